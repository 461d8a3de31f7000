package import CLinux
internal import Glibc

/// The only door to the operating system: one thin function per call.
///
/// Calls are repeated if a signal interrupts them. Transfers are repeated until they are complete.
/// With a directory, a relative `name` must be a single component, because `O_NOFOLLOW` guards only
/// the last component.
package enum SystemCalls {
  /// Runs a call that returns −1 and sets `errno` on failure; repeats it after a signal.
  @inline(__always)
  static func checked<Value: BinaryInteger>(
    _ call: () -> Value
  ) throws(ErrorNumber) -> Value {
    while true {
      let value = call()
      if value != -1 { return value }
      let number = errno
      if number != EINTR { throw ErrorNumber(rawValue: number) }
    }
  }

  /// The identifier of the current boot; nil if `/proc` does not have it (`proc_sys_kernel(5)`,
  /// `random/boot_id`).
  package static func bootID() -> String? {
    var text = [UInt8](repeating: 0, count: 64)
    guard
      let file = try? openForReading(atPath: "/proc/sys/kernel/random/boot_id"),
      let count = try? read(file.rawValue, into: &text, at: 0), count > 1
    else { return nil }
    return String(validating: text[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  /// The time of day since the beginning of 1970 in UTC (`clock_gettime(2)`, `CLOCK_REALTIME`).
  package static var timeOfDay: Duration {
    var time = timespec()
    _ = clock_gettime(CLOCK_REALTIME, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  /// `geteuid(2)`.
  package static var effectiveUserID: uid_t { geteuid() }

  /// `getpid(2)`.
  package static var processID: CInt { getpid() }

  /// The text of an `errno` value (`strerror_r(3)`).
  package static func text(of number: CInt) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, strerror_r(number, base, buffer.count) == 0 else {
        return "error \(number)"
      }
      return String(cString: base)
    }
  }
}
