import Glibc
import LinuxSystem

/// An open cache directory, which this process holds until the last reference is released.
final class CacheRoot: Sendable {
  /// The path as given, without trailing slashes.
  let path: String
  /// The directory of this format version.
  let version: Descriptor
  /// The directory of the entries.
  let files: Descriptor
  private let directory: Descriptor
  private let lock: DirectoryLock

  static let versionName = "v1"
  static let filesName = "files"

  init(path: String, mountpoint: String?) throws(CacheError) {
    var path = path
    while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.path = path
    directory = try PrivateDirectory.open(path: path, marker: Self.versionName)
    lock = try DirectoryLock(in: directory, path: path, mountpoint: mountpoint)
    let versionPath = path + "/" + Self.versionName
    version = try PrivateDirectory.open(
      Self.versionName, creatingIn: directory, path: versionPath)
    files = try PrivateDirectory.open(
      Self.filesName, creatingIn: version, path: versionPath + "/" + Self.filesName)
  }

  /// Removes the directory if it holds nothing but what ``init(path:mountpoint:)`` makes.
  ///
  /// Only empty directories and the lock are removed, so nothing of value is lost in a race.
  func removeIfEmpty() {
    guard (try? SystemCalls.names(in: version.rawValue)) == [Self.filesName],
      (try? SystemCalls.names(in: files.rawValue)) == [],
      (try? SystemCalls.names(in: directory.rawValue))?.sorted()
        == [DirectoryLock.name, Self.versionName]
    else { return }
    try? SystemCalls.removeDirectory(Self.filesName, in: version.rawValue)
    try? SystemCalls.removeDirectory(Self.versionName, in: directory.rawValue)
    try? SystemCalls.unlink(DirectoryLock.name, in: directory.rawValue)
    try? SystemCalls.removeDirectory(path, in: AT_FDCWD)
  }
}
