package import CLinux
package import Glibc

/// Information from the kernel about this process and its system.
package enum ProcessCalls {
  /// The identifier of the current boot; nil if `/proc` does not have it (`proc_sys_kernel(5)`,
  /// `random/boot_id`).
  package static func bootID() -> String? {
    var text = [UInt8](repeating: 0, count: 64)
    guard
      let file = try? SystemCalls.openForReading(atPath: "/proc/sys/kernel/random/boot_id"),
      let count = try? SystemCalls.read(file.rawValue, into: &text, at: 0), count > 1
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

  // MARK: Descriptors

  /// How many descriptors this process may have (`getrlimit(2)`, `RLIMIT_NOFILE`).
  package static var descriptorLimit: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    return Int(clamping: limit.rlim_cur)
  }

  /// Raises that number to the hard limit (`setrlimit(2)`); a failure leaves it unchanged.
  package static func raiseDescriptorLimit() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  /// The lowest number that a new descriptor would get (`fcntl(2)`, `F_DUPFD_CLOEXEC`).
  ///
  /// Linux assigns the lowest free number, so about this many descriptors are in use.
  package static func lowestFreeDescriptor(_ descriptor: CInt) -> Int? {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return nil }
    Descriptor.close(copy)
    return Int(copy)
  }

  /// The descriptors that this process has open now (`proc_pid_fd(5)`).
  package static func openDescriptors() throws(ErrorNumber) -> [CInt] {
    let directory = try checked {
      Glibc.open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    return try SystemCalls.names(inOwned: directory).compactMap { CInt($0) }.filter {
      $0 != directory
    }
  }
}
