import ExtentRecord
import Glibc

/// The lock on a cache directory: one process at a time (`flock(2)`).
///
/// The locked file names the process. The kernel releases the lock when the process dies, however it
/// dies.
struct DirectoryLock: ~Copyable {
  static let name = "lock"

  private let file: Descriptor

  /// Takes the lock, or says who holds it.
  ///
  /// - Parameters:
  ///   - directory: the cache directory.
  ///   - path: its path, for errors.
  /// - Throws: ``CacheError/Code/inUse(pid:)`` where another descriptor holds the lock.
  init(in directory: Descriptor, path: String) throws(CacheError) {
    let heldBy: Int32?
    do throws(ErrorNumber) {
      let (file, isWritable) = try Self.open(in: directory)
      if try SystemCalls.lockExclusively(file.rawValue) {
        if isWritable {
          try SystemCalls.setPermissions(file.rawValue, to: 0o600)
          // Who it is, is for people; the lock holds without. What a full or failing disk has can be read.
          try? SystemCalls.truncate(file.rawValue, to: 0)
          try? SystemCalls.write(
            file.rawValue, Array("\(SystemCalls.processID)\n".utf8), at: 0)
        }
        self.file = file
        return
      }
      heldBy = Self.processID(in: file)
    } catch {
      throw CacheError(error, path: path + "/" + Self.name)
    }
    throw CacheError(code: .inUse(pid: heldBy), path: path)
  }

  deinit {
    // So that whoever meets the lock between its taking and the writing of the process identifier
    // reads none rather than ours.
    try? SystemCalls.truncate(file.rawValue, to: 0)
  }

  /// Opens the file to lock; of a cache on a read-only file system, which may be read, the one that is
  /// there.
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

  /// The process that the locked file names; nil where it names none.
  static func processID(in file: Descriptor) -> Int32? {
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = (try? SystemCalls.read(file.rawValue, into: &bytes, at: 0)) ?? 0
    let digits = bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") }
    return Int32(String(decoding: digits, as: UTF8.self))
  }

  /// Whether the kernel counts a lock on `file` among those of a process (`/proc/locks`, proc(5)).
  ///
  /// By inode number: on some file systems the device there is not the one that `fstat(2)` tells.
  static func isHeld(_ file: Descriptor, by processID: Int32) -> Bool {
    guard let inode = try? SystemCalls.inodeNumber(file.rawValue),
      let table = try? SystemCalls.openForReading(atPath: "/proc/locks")
    else { return false }
    var text: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    while let count = try? SystemCalls.read(table.rawValue, into: &piece, at: Int64(text.count)),
      count > 0
    {
      text += piece.prefix(count)
    }
    // 1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF
    return text.split(separator: UInt8(ascii: "\n")).contains { line in
      let words = line.split(separator: UInt8(ascii: " "))
      return words.count > 5 && words[1].elementsEqual("FLOCK".utf8)
        && words[4].elementsEqual("\(processID)".utf8)
        && words[5].split(separator: UInt8(ascii: ":")).last?.elementsEqual("\(inode)".utf8) == true
    }
  }
}
