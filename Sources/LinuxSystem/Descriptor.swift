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

  deinit {
    SystemCalls.close(rawValue)
  }
}
