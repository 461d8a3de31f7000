import Glibc

/// Why a piece of the harness could not do its work; never a verdict on httpfs itself.
struct HarnessError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }

  /// The text of `errno` after a system call that failed.
  static func systemCall(_ name: String, _ code: CInt = errno) -> HarnessError {
    HarnessError("\(name): \(String(cString: strerror(code)))")
  }
}
