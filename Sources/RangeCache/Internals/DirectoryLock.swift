import Glibc
import LinuxSystem

/// The lock on a cache directory, which one process at a time holds (`flock(2)`).
///
/// The locked file contains the process identifier and, for a mount, its mount point on a second
/// line. The kernel releases the lock when the process dies, however it dies.
struct DirectoryLock: ~Copyable {
  static let name = "lock"

  private let file: Descriptor

  /// Takes the lock, or reports its holder.
  ///
  /// - Parameters:
  ///   - directory: the cache directory.
  ///   - path: its path, for errors.
  ///   - mountpoint: the mount point that the cache serves, for the errors of others.
  /// - Throws: ``CacheError/Code/inUse(pid:mountpoint:)`` if another descriptor holds the lock.
  init(in directory: Descriptor, path: String, mountpoint: String?) throws(CacheError) {
    let holder: (processID: Int32?, mountpoint: String?)
    do throws(ErrorNumber) {
      let (file, isWritable) = try Self.open(in: directory)
      if try SystemCalls.lockExclusively(file.rawValue) {
        if isWritable {
          try SystemCalls.setPermissions(file.rawValue, to: 0o600)
          // The process identifier is for people; the lock holds without it. A cache on a full or
          // failing disk can still be read.
          try? SystemCalls.truncate(file.rawValue, to: 0)
          try? SystemCalls.write(
            file.rawValue,
            Array("\(ProcessCalls.processID)\n\(mountpoint.map { "\($0)\n" } ?? "")".utf8), at: 0)
        }
        self.file = file
        return
      }
      holder = Self.holder(in: file)
    } catch {
      throw CacheError(error, path: path + "/" + Self.name)
    }
    throw CacheError(
      code: .inUse(pid: holder.processID, mountpoint: holder.mountpoint), path: path)
  }

  deinit {
    // Clear the identifier: the next holder takes the lock before it writes its own, and other
    // processes must not read this one meanwhile.
    try? SystemCalls.truncate(file.rawValue, to: 0)
  }

  /// Opens the file to lock.
  ///
  /// On a read-only file system, where a cache can be read, the file must exist.
  private static func open(
    in directory: Descriptor
  ) throws(ErrorNumber) -> (file: Descriptor, isWritable: Bool) {
    do throws(ErrorNumber) {
      return (try SystemCalls.openOrCreateFile(name, in: directory.rawValue), true)
    } catch {
      guard error.rawValue == EROFS else { throw error }
      return (try SystemCalls.openFile(name, in: directory.rawValue), false)
    }
  }

  /// The process identifier in the locked file; nil if there is none.
  static func processID(in file: Descriptor) -> Int32? { holder(in: file).processID }

  /// What the locked file says about its holder.
  private static func holder(in file: Descriptor) -> (processID: Int32?, mountpoint: String?) {
    // A path has at most 4,096 bytes (PATH_MAX).
    var bytes = [UInt8](repeating: 0, count: 4200)
    let count = (try? SystemCalls.read(file.rawValue, into: &bytes, at: 0)) ?? 0
    let lines = bytes.prefix(count).split(separator: UInt8(ascii: "\n"))
      .map { String(decoding: $0, as: UTF8.self) }
    return (
      lines.first.flatMap { Int32($0) }.flatMap { $0 > 0 ? $0 : nil },
      lines.count > 1 ? lines[1] : nil
    )
  }

  /// Whether the kernel lists a lock of a process on `file` (`/proc/locks`, proc(5)).
  ///
  /// It compares inode numbers only: on some file systems the listed device differs from that of
  /// `fstat(2)`.
  static func isHeld(_ file: Descriptor, by processID: Int32) -> Bool {
    guard let inode = try? SystemCalls.status(file.rawValue).identity.inode,
      let text = try? StreamCalls.contents(ofFile: "/proc/locks")
    else { return false }
    // 1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF
    return text.split(separator: UInt8(ascii: "\n")).contains { line in
      let words = line.split(separator: UInt8(ascii: " "))
      return words.count > 5 && words[1].elementsEqual("FLOCK".utf8)
        && words[4].elementsEqual("\(processID)".utf8)
        && words[5].split(separator: UInt8(ascii: ":")).last?.elementsEqual("\(inode)".utf8) == true
    }
  }
}
