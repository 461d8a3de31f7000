internal import Glibc

/// An open file descriptor that is closed when its last owner releases it.
///
/// It is a class and not a non-copyable value, because a thread that syncs a file keeps it open
/// after the writer has dropped it.
package final class Descriptor: Sendable {
  package let rawValue: CInt

  /// Takes over an open descriptor.
  package init(_ rawValue: CInt) {
    self.rawValue = rawValue
  }

  deinit { Self.close(rawValue) }

  /// `close(2)`.
  ///
  /// Not repeated after a signal, because Linux has already released the descriptor.
  package static func close(_ descriptor: CInt) {
    _ = Glibc.close(descriptor)
  }
}
