import Foundation
import Glibc

/// Facts about local files; not for files on a mount, because the calls may block.
enum FileStatus {
  /// The length in bytes, or nil if there is no such file.
  static func byteCount(of path: String) -> Int64? {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : nil
  }

  /// The number of the file's inode; nil if there is no such file.
  static func inode(of path: String) -> UInt64? {
    var status = stat()
    return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
  }

  /// The bytes that the file system has allocated to a file, or nil if there is no such file.
  ///
  /// For a sparse file, this is about the number of bytes written to it.
  static func allocatedByteCount(of path: String) -> Int64? {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_blocks) * 512 : nil
  }

  /// The paths of all files called `name` below `directory`.
  static func files(named name: String, below directory: String) -> [String] {
    files(below: directory) { $0 == name }
  }

  /// The paths of all files below `directory` whose names begin with `prefix`.
  static func files(beginning prefix: String, below directory: String) -> [String] {
    files(below: directory) { $0.hasPrefix(prefix) }
  }

  private static func files(below directory: String, where isWanted: (String) -> Bool) -> [String] {
    guard let paths = FileManager.default.enumerator(atPath: directory) else { return [] }
    return paths.compactMap { $0 as? String }
      .filter { isWanted(($0 as NSString).lastPathComponent) }
      .map { "\(directory)/\($0)" }.sorted()
  }
}
