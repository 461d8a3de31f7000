import Glibc

/// The reason for a failure of the harness; never a verdict on httpfs itself.
struct HarnessError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }

  /// The text of `errno` after a failed system call.
  static func systemCall(_ name: String, _ code: CInt = errno) -> HarnessError {
    HarnessError("\(name): \(String(cString: strerror(code)))")
  }
}
