/// An open file descriptor that is closed when its last owner lets go of it.
///
/// A class, not a non-copyable value: a thread that syncs a file holds it open while the writer
/// already drops it.
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
