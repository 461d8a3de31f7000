import CLinux
import Glibc
import LinuxSystem
import TextFormat

/// Checks whether the cache has a suitable place.
extension DoctorChecks {
  static func cacheDirectory(_ path: String?) -> [DoctorFinding] {
    let elsewhere = "name another one with --cache-dir"
    guard let path else {
      return [.failed("no cache directory: neither XDG_CACHE_HOME nor HOME is set", elsewhere)]
    }
    var status = stat()
    if lstat(path, &status) != 0 {
      let error = ErrorNumber.last
      guard error.rawValue == ENOENT else {
        return [.failed("cache directory \(path): \(error)", elsewhere)]
      }
      return missingCacheDirectory(path)
    }
    switch status.st_mode & S_IFMT {
    case S_IFDIR: break
    case S_IFLNK:
      return [
        .failed("cache directory \(path) is a symbolic link", "name the directory itself")
      ]
    default: return [.failed("cache directory \(path) is not a directory", elsewhere)]
    }
    guard status.st_uid == geteuid() else {
      return [
        .failed("cache directory \(path) belongs to user \(status.st_uid), not you", elsewhere)
      ]
    }
    guard access(path, R_OK | W_OK | X_OK) == 0 else {
      return [.failed("cache directory \(path): \(ErrorNumber.last)", elsewhere)]
    }
    let mode = status.st_mode & 0o777
    let privacy: DoctorFinding =
      mode & 0o077 == 0
      ? .ok("cache directory \(path) is writable and private")
      : .warning(
        "cache directory \(path) is open to others (mode \(String(mode, radix: 8)))",
        "run 'chmod 700 \(path)'")
    return [privacy] + disk(below: path)
  }

  /// A cache directory that does not exist yet, below the first existing directory.
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
          "cache directory \(path) cannot be created in \(parent): \(ErrorNumber.last)",
          "name another one with --cache-dir")
      ]
    }
    return [.ok("cache directory \(path) will be created")] + disk(below: parent)
  }

  private static func disk(below path: String) -> [DoctorFinding] {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else {
      return [
        .warning("the file system of \(path): \(ErrorNumber.last)", "use --cache-dir elsewhere")
      ]
    }
    var findings = [freeSpace(status)]
    // A file takes three inodes. File systems that create inodes on demand report none.
    if status.f_files > 0, status.f_favail < 3000 {
      findings.append(
        .warning(
          "\(status.f_favail) free inodes for the cache: each file takes three",
          "remove small files, or use --cache-dir on another disk"))
    }
    if let finding = fileSystemType(of: path) { findings.append(finding) }
    if let finding = holes(in: path) { findings.append(finding) }
    return findings
  }

  private static func freeSpace(_ status: statvfs) -> DoctorFinding {
    let (product, overflow) = UInt64(status.f_bavail)
      .multipliedReportingOverflow(by: UInt64(status.f_frsize))
    let byteCount = overflow ? Int64.max : Int64(clamping: product)
    let text = "\(humanBytes(byteCount)) free for the cache"
    // Less than one large file: the cache would evict constantly.
    return byteCount < 1 << 30
      ? .warning(text, "free some, or use --cache-dir on a larger disk") : .ok(text)
  }

  /// The finding about the type of the cache's file system; nil if there is none.
  private static func fileSystemType(of path: String) -> DoctorFinding? {
    let elsewhere = "use --cache-dir on a local disk"
    // Magic numbers of statfs(2).
    switch httpfs_file_system_type(path) {
    case 0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x517B, 0x00C3_6400, 0x0102_1997, 0x5346_414F:
      return .warning(
        "the cache is on a network file system: slower than many servers, and its locks and times"
          + " may lie", elsewhere)
    case 0x6573_5546:
      return .warning(
        "the cache is on a FUSE file system: each byte goes through another program", elsewhere)
    case 0x0102_1994:
      return .warning(
        "the cache is on a tmpfs: it takes memory, and is gone after a restart", elsewhere)
    case 0x794C_7630:
      return .ok("the cache is on an overlay: complete files are not read by kernel passthrough")
    default: return nil
    }
  }

  /// Whether files can have holes, and whether holes can be made; nil if that cannot be tested
  /// without leaving a trace.
  private static func holes(in path: String) -> DoctorFinding? {
    // O_TMPFILE of open(2): a nameless file that disappears when it is closed. glibc hides it.
    let nameless = O_DIRECTORY | 0o20_000_000
    let descriptor = open(path, nameless | O_RDWR | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      let error = ErrorNumber.last
      guard [ENOSPC, EDQUOT, EROFS, EIO].contains(error.rawValue) else { return nil }
      return .failed(
        "no file can be created in \(path): \(error)",
        "free some space, or use --cache-dir elsewhere"
      )
    }
    defer { close(descriptor) }
    let byteCount = 256 << 10
    let farEnd: off_t = 64 << 20
    let bytes = [UInt8](repeating: 1, count: byteCount)
    guard pwrite(descriptor, bytes, byteCount, farEnd - off_t(byteCount)) == byteCount else {
      return .failed(
        "nothing can be written in \(path): \(ErrorNumber.last)",
        "free some space, or use --cache-dir elsewhere")
    }
    fsync(descriptor)
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    // In units of 512 bytes (stat(2)).
    guard Int64(status.st_blocks) * 512 < Int64(farEnd) / 2 else {
      return .warning(
        "the file system of \(path) has no sparse files: a file takes its whole length at once",
        "use --cache-dir on ext4, XFS or Btrfs")
    }
    guard httpfs_punch_hole(descriptor, Int64(farEnd) - Int64(byteCount), Int64(byteCount)) == 0
    else {
      return .warning(
        "the file system of \(path) cannot give parts of a file back: damaged parts stay on the disk",
        "use --cache-dir on ext4, XFS or Btrfs")
    }
    return .ok("the cache's disk keeps sparse files")
  }
}
