import CLinux
import Glibc
import LinuxSystem

/// The checks of `httpfs doctor`.
///
/// No check changes anything.
enum DoctorChecks {
  static var isRoot: Bool { geteuid() == 0 }

  /// Whether this process has CAP_SYS_ADMIN, from `CapEff` of proc(5).
  static var hasSystemAdministration: Bool {
    let bit: UInt64 = 1 << 21  // CAP_SYS_ADMIN of capability.h
    let label = "CapEff:"
    guard let bytes = try? StreamCalls.contents(ofFile: "/proc/self/status"),
      let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        .first(where: { $0.hasPrefix(label) }),
      let digits = line.dropFirst(label.count).split(whereSeparator: \.isWhitespace).first,
      let capabilities = UInt64(digits, radix: 16)
    else { return isRoot }
    return capabilities & bit != 0
  }

  static func fuseDevice() -> DoctorFinding {
    let path = "/dev/fuse"
    let descriptor = open(path, O_RDWR | O_CLOEXEC)
    if descriptor >= 0 {
      close(descriptor)
      // Root in a container has the device but may lack the right to mount.
      if isRoot, !hasSystemAdministration {
        return .failed(
          "\(path) can be opened, but root lacks CAP_SYS_ADMIN here",
          "start the container with '--cap-add SYS_ADMIN'")
      }
      return .ok("\(path) can be opened")
    }
    let error = ErrorNumber.last
    switch error.rawValue {
    case ENOENT, ENODEV, ENXIO:
      return .failed(
        "\(path): \(error)",
        "load the module with 'modprobe fuse', or start the container with"
          + " '--device /dev/fuse --cap-add SYS_ADMIN'")
    case EACCES where !isRoot:
      // libfuse opens the device itself before it calls fusermount3 to mount.
      return .failed("\(path): \(error)", "run 'chmod 666 \(path)' as root, as udev does")
    default:
      return .failed(
        "\(path): \(error)", "install the package fuse3, or in a container allow the device")
    }
  }

  static func mountHelper() -> DoctorFinding {
    guard let path = findInPath("fusermount3") else {
      let advice = "install the package fuse3 ('apt-get install fuse3'), or correct PATH"
      return isRoot
        ? .warning("fusermount3 is not in PATH: only root can mount", advice)
        : .failed("fusermount3 is not in PATH", advice)
    }
    var status = stat()
    if stat(path, &status) == 0, status.st_uid == 0, status.st_mode & S_ISUID != 0 {
      return .ok("\(path) is setuid root")
    }
    let problem = "\(path) is not setuid root: only root can mount"
    let advice = "run 'chmod u+s \(path)' as root"
    return isRoot ? .warning(problem, advice) : .failed(problem, advice)
  }

  static func allowOther() -> DoctorFinding {
    let path = "/etc/fuse.conf"
    let bytes = (try? StreamCalls.contents(ofFile: path, maximumByteCount: 1 << 20)) ?? []
    let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
    if lines.contains(where: { $0.split(whereSeparator: \.isWhitespace) == ["user_allow_other"] }) {
      return .ok("\(path) has user_allow_other: every user may use --allow-other")
    }
    return .ok(
      "\(path) has no user_allow_other: only root may use --allow-other;"
        + " add the line to change that")
  }

  private static func findInPath(_ program: String) -> String? {
    // Without PATH, the C library searches these two directories.
    let path = environmentVariable("PATH") ?? "/bin:/usr/bin"
    return path.split(separator: ":").map { "\($0)/\(program)" }
      .first { access($0, X_OK) == 0 }
  }

  static func kernel() -> DoctorFinding {
    var name = utsname()
    uname(&name)
    let release = withUnsafeBytes(of: &name.release) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
    let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
    // FUSE passthrough exists since Linux 6.9 and needs CAP_SYS_ADMIN.
    let hasPassthrough = numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 9)
    let passthrough =
      switch (hasPassthrough, hasSystemAdministration) {
      case (true, true): "complete files are read by kernel passthrough"
      case (true, false): "kernel passthrough needs root; complete files are read by splice"
      case (false, _): "kernel passthrough needs Linux 6.9; complete files are read by splice"
      }
    return .ok("Linux \(release): \(passthrough)")
  }
}
