internal import Glibc

/// An `errno` with its usual text.
package struct SystemError: Error, Equatable, CustomStringConvertible {
  package let code: Int32

  /// What the last failed call of this thread has left.
  package static var last: SystemError { SystemError(code: errno) }

  /// `strerror(3)`.
  package var description: String { String(cString: strerror(code)) }

  package init(code: Int32) { self.code = code }
}
