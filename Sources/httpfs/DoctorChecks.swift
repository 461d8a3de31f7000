import Glibc
import MountStatus

/// What one check of `httpfs doctor` has found.
struct DoctorFinding: CustomStringConvertible {
  enum Level: String {
    case ok
    case warning = "warn"
    case failed = "FAIL"
  }

  let level: Level
  let message: String

  static func ok(_ message: String) -> DoctorFinding { .init(level: .ok, message: message) }

  /// Something works less well; `message` says what to do.
  static func warning(_ message: String) -> DoctorFinding {
    .init(level: .warning, message: message)
  }

  /// Nothing can be mounted; `message` says what to do.
  static func failed(_ message: String) -> DoctorFinding {
    .init(level: .failed, message: message)
  }

  var description: String {
    level.rawValue + String(repeating: " ", count: 5 - level.rawValue.count)
      + escapingControls(message)
  }
}

/// The checks that `httpfs doctor` makes.
///
/// Each looks only; none changes anything.
enum DoctorChecks {
  private static var isRoot: Bool { geteuid() == 0 }

  /// Whether this process has CAP_SYS_ADMIN, from `CapEff` of proc(5).
  private static var hasSystemAdministration: Bool {
    let bit: UInt64 = 1 << 21  // CAP_SYS_ADMIN of capability.h
    let label = "CapEff:"
    guard let bytes = try? contents(ofFile: "/proc/self/status"),
      let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        .first(where: { $0.hasPrefix(label) }),
      let digits = line.dropFirst(label.count).split(whereSeparator: \.isWhitespace).first,
      let capabilities = UInt64(digits, radix: 16)
    else { return isRoot }
    return capabilities & bit != 0
  }

  // MARK: FUSE

  static func fuseDevice() -> DoctorFinding {
    let path = "/dev/fuse"
    let descriptor = open(path, O_RDWR | O_CLOEXEC)
    if descriptor >= 0 {
      close(descriptor)
      // Root in a container has the device but not always the right to mount.
      if isRoot, !hasSystemAdministration {
        return .failed(
          "\(path) can be opened, but root lacks CAP_SYS_ADMIN here; start the container with"
            + " '--cap-add SYS_ADMIN'")
      }
      return .ok("\(path) can be opened")
    }
    let error = SystemError.last
    switch error.code {
    case ENOENT, ENODEV, ENXIO:
      return .failed(
        "\(path): \(error); load the module with 'modprobe fuse', or start the container with"
          + " '--device /dev/fuse --cap-add SYS_ADMIN'")
    case EACCES where !isRoot:
      // libfuse opens the device itself before it asks fusermount3 to mount.
      return .failed("\(path): \(error); run 'chmod 666 \(path)' as root, as udev does")
    default:
      return .failed(
        "\(path): \(error); install the package fuse3, or in a container allow the device")
    }
  }

  static func mountHelper() -> DoctorFinding {
    let advice = "install the package fuse3"
    guard let path = findInPath("fusermount3") else {
      return isRoot
        ? .warning("fusermount3 is missing: only root can mount; \(advice)")
        : .failed("fusermount3 is missing; \(advice)")
    }
    if setuidHelper() != nil { return .ok("\(path) is setuid root") }
    let problem = "\(path) is not setuid root: only root can mount; run 'chmod u+s \(path)' as root"
    return isRoot ? .warning(problem) : .failed(problem)
  }

  static func allowOther() -> DoctorFinding {
    let path = "/etc/fuse.conf"
    let bytes = (try? contents(ofFile: path, maximumByteCount: 1 << 20)) ?? []
    let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
    if lines.contains(where: { $0.split(whereSeparator: \.isWhitespace) == ["user_allow_other"] }) {
      return .ok("\(path) has user_allow_other: every user may use --allow-other")
    }
    return .ok(
      "\(path) has no user_allow_other: only root may use --allow-other;"
        + " add the line to change that")
  }

  /// The path of fusermount3 if it runs as root for everyone.
  private static func setuidHelper() -> String? {
    guard let path = findInPath("fusermount3") else { return nil }
    var status = stat()
    guard stat(path, &status) == 0, status.st_uid == 0, status.st_mode & S_ISUID != 0 else {
      return nil
    }
    return path
  }

  private static func findInPath(_ program: String) -> String? {
    // Without a PATH the C library looks in these two.
    let path = environmentVariable("PATH") ?? "/bin:/usr/bin"
    return path.split(separator: ":").map { "\($0)/\(program)" }
      .first { access($0, X_OK) == 0 }
  }

  // MARK: Cache

  static func cacheDirectory(_ path: String?) -> [DoctorFinding] {
    guard let path else {
      return [
        .failed("no cache directory: neither XDG_CACHE_HOME nor HOME is set; use --cache-dir")
      ]
    }
    var status = stat()
    if lstat(path, &status) != 0 {
      let error = SystemError.last
      guard error.code == ENOENT else { return [.failed("cache directory \(path): \(error)")] }
      return missingCacheDirectory(path)
    }
    switch status.st_mode & S_IFMT {
    case S_IFDIR: break
    case S_IFLNK:
      return [
        .failed("cache directory \(path) is a symbolic link; name the directory itself")
      ]
    default: return [.failed("cache directory \(path) is not a directory; use --cache-dir")]
    }
    guard status.st_uid == geteuid() else {
      return [
        .failed(
          "cache directory \(path) belongs to user \(status.st_uid), not you; use --cache-dir")
      ]
    }
    guard access(path, R_OK | W_OK | X_OK) == 0 else {
      return [.failed("cache directory \(path): \(SystemError.last); use --cache-dir")]
    }
    let mode = status.st_mode & 0o777
    let privacy: DoctorFinding =
      mode & 0o077 == 0
      ? .ok("cache directory \(path) is writable and private")
      : .warning(
        "cache directory \(path) is open to others (mode \(String(mode, radix: 8)));"
          + " run 'chmod 700 \(path)'")
    return [privacy, freeSpace(path)]
  }

  /// A cache directory that is to be created, below the first directory that exists.
  private static func missingCacheDirectory(_ path: String) -> [DoctorFinding] {
    var parent = path
    while parent != "/", parent != ".", access(parent, F_OK) != 0 {
      while parent.count > 1, parent.hasSuffix("/") { parent.removeLast() }
      if let slash = parent.lastIndex(of: "/") {
        parent = slash == parent.startIndex ? "/" : String(parent[..<slash])
      } else {
        parent = "."
      }
    }
    guard access(parent, W_OK | X_OK) == 0 else {
      return [
        .failed(
          "cache directory \(path) cannot be created in \(parent): \(SystemError.last);"
            + " use --cache-dir")
      ]
    }
    return [.ok("cache directory \(path) will be created"), freeSpace(parent)]
  }

  private static func freeSpace(_ path: String) -> DoctorFinding {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else {
      return .warning("free space at \(path): \(SystemError.last)")
    }
    let (product, overflow) = UInt64(status.f_bavail)
      .multipliedReportingOverflow(by: UInt64(status.f_frsize))
    let byteCount = overflow ? Int64.max : Int64(clamping: product)
    let text = "\(humanBytes(byteCount)) free for the cache"
    // Less than one large file: the cache would evict all the time.
    return byteCount < 1 << 30
      ? .warning("\(text); free some, or use --cache-dir on a larger disk") : .ok(text)
  }

  // MARK: The rest

  static func certificates() -> DoctorFinding {
    let path = environmentVariable("SSL_CERT_FILE") ?? "/etc/ssl/certs/ca-certificates.crt"
    var status = stat()
    guard stat(path, &status) == 0, status.st_size > 0, access(path, R_OK) == 0 else {
      return .warning(
        "\(path) is missing or empty: https URLs will fail; install the package ca-certificates")
    }
    return .ok("certificates in \(path)")
  }

  static func kernel() -> DoctorFinding {
    var name = utsname()
    uname(&name)
    let release = withUnsafeBytes(of: &name.release) {
      String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
    let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
    // FUSE passthrough came with Linux 6.9 and needs CAP_SYS_ADMIN.
    let hasPassthrough = numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 9)
    let passthrough =
      switch (hasPassthrough, hasSystemAdministration) {
      case (true, true): "complete files are read by kernel passthrough"
      case (true, false): "kernel passthrough needs root; complete files are read by splice"
      case (false, _): "kernel passthrough needs Linux 6.9; complete files are read by splice"
      }
    return .ok("Linux \(release): \(passthrough)")
  }

  static func descriptorLimit() -> DoctorFinding {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return .warning("limit of open files: \(SystemError.last)")
    }
    // Each open file costs a descriptor for its data, each connection one more.
    let wanted: rlim_t = 1024
    return limit.rlim_cur < wanted
      ? .warning("at most \(limit.rlim_cur) open files; run 'ulimit -n \(wanted)' before mounting")
      : .ok("up to \(limit.rlim_cur) open files")
  }
}
