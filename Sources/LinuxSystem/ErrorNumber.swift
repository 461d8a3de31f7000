internal import Glibc

/// An `errno` value as a thrown error, described by its usual text.
///
/// The code that catches it adds the context.
package struct ErrorNumber: Error, Equatable, CustomStringConvertible {
  package let rawValue: CInt

  package init(rawValue: CInt) { self.rawValue = rawValue }

  /// The error of the last failed call of this thread.
  package static var last: ErrorNumber { ErrorNumber(rawValue: errno) }

  /// Whether the process or the system lacks descriptors or memory, which is temporary.
  package var isShortage: Bool { [EMFILE, ENFILE, ENOMEM].contains(rawValue) }

  /// Its text (`strerror_r(3)`).
  package var description: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, strerror_r(rawValue, base, buffer.count) == 0 else {
        return "error \(rawValue)"
      }
      return String(cString: base)
    }
  }
}
