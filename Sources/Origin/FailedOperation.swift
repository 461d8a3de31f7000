import LinuxSystem

/// A failed system call, described for the user.
struct FailedOperation: Error, CustomStringConvertible {
  /// The attempted operation, such as `open /tmp/x`.
  let operation: String
  let cause: ErrorNumber

  /// The cause is by default the error of the last failed call of this thread.
  init(_ operation: String, _ cause: ErrorNumber = .last) {
    self.operation = operation
    self.cause = cause
  }

  var description: String { "cannot \(operation): \(cause)" }
}
