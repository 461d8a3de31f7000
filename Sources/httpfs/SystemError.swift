import Glibc

/// An `errno` with its usual text.
struct SystemError: Error, Equatable, CustomStringConvertible {
  let code: Int32

  /// The error of the last failed call of this thread.
  static var last: SystemError { SystemError(code: errno) }

  /// `strerror(3)`.
  var description: String { String(cString: strerror(code)) }

  init(code: Int32) { self.code = code }
}
