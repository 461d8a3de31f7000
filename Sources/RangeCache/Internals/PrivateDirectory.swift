import Glibc
internal import HTTPTransferCore
import LinuxSystem

/// Opens directories that only their owner can enter, and refuses others.
enum PrivateDirectory {
  /// Opens the directory `path`, and creates it and its parents with mode 0700 if they are missing.
  ///
  /// A directory that others may enter is tightened to 0700 only if it is empty or holds `marker`.
  /// Tightening `/tmp` or a home directory would do more harm than the cache is worth.
  static func open(path: String, marker: String) throws(CacheError) -> Descriptor {
    // A trailing slash would make the kernel follow a symbolic link in the last component.
    var path = path[...]
    while path.count > 1, path.last == "/" { path.removeLast() }
    let name = String(path)
    do throws(ErrorNumber) {
      try makeWithParents(path)
    } catch {
      throw CacheError(error, path: name)
    }
    return try open(name, in: AT_FDCWD, path: name) { (directory) throws(ErrorNumber) in
      let names = try SystemCalls.names(in: directory.rawValue)
      return names.isEmpty || names.contains(marker)
    }
  }

  /// Opens the directory `name` within a private one, and creates it if it is missing.
  static func open(
    _ name: String, creatingIn parent: Descriptor, path: String
  ) throws(CacheError) -> Descriptor {
    do throws(ErrorNumber) {
      _ = try SystemCalls.makeDirectory(name, in: parent.rawValue)
    } catch {
      throw CacheError(error, path: path)
    }
    return try open(name, in: parent.rawValue, path: path) { _ in true }
  }

  /// Opens an existing directory, below `parent` unless its name is absolute; changes nothing.
  ///
  /// - Throws: ``CacheError/Code/notACache`` if it is missing.
  static func openExisting(
    _ name: String, in parent: CInt, path: String
  ) throws(CacheError) -> Descriptor {
    // A trailing slash would make the kernel follow a symbolic link in the last component.
    var name = name[...]
    while name.count > 1, name.last == "/" { name.removeLast() }
    let owner: UInt32
    do throws(ErrorNumber) {
      let directory = try SystemCalls.openDirectory(String(name), in: parent)
      owner = try SystemCalls.status(directory.rawValue).owner
      if owner == ProcessCalls.effectiveUserID { return directory }
    } catch {
      if error.rawValue == ENOENT { throw CacheError(code: .notACache, path: path, errno: ENOENT) }
      throw refusal(error, String(name), in: parent, path: path)
    }
    throw CacheError(code: .unsafeDirectory(.foreignOwner(uid: owner)), path: path)
  }

  /// Opens an existing directory after checking its kind and its owner.
  private static func open(
    _ name: String, in parent: CInt, path: String,
    mayTighten: (Descriptor) throws(ErrorNumber) -> Bool
  ) throws(CacheError) -> Descriptor {
    let reason: CacheError.UnsafeDirectoryReason
    do throws(ErrorNumber) {
      let directory = try SystemCalls.openDirectory(name, in: parent)
      let status = try SystemCalls.status(directory.rawValue)
      if status.owner != ProcessCalls.effectiveUserID {
        reason = .foreignOwner(uid: status.owner)
      } else if status.permissions & 0o077 != 0, try !mayTighten(directory) {
        reason = .holdsOtherFiles
      } else {
        if status.permissions != 0o700 {
          try SystemCalls.setPermissions(directory.rawValue, to: 0o700)
        }
        return directory
      }
    } catch {
      throw refusal(error, name, in: parent, path: path)
    }
    throw CacheError(code: .unsafeDirectory(reason), path: path)
  }

  /// The error for a directory that could not be opened; it shows whether a link has its name.
  private static func refusal(
    _ error: ErrorNumber, _ name: String, in parent: CInt, path: String
  ) -> CacheError {
    guard error.rawValue == ELOOP || error.rawValue == ENOTDIR else {
      return CacheError(error, path: path)
    }
    let isLink = (try? SystemCalls.isSymbolicLink(name, in: parent)) ?? false
    return CacheError(
      code: .unsafeDirectory(isLink ? .symbolicLink : .notADirectory), path: path,
      errno: error.rawValue)
  }

  private static func makeWithParents(_ path: Substring) throws(ErrorNumber) {
    do throws(ErrorNumber) {
      _ = try SystemCalls.makeDirectory(String(path), in: AT_FDCWD)
    } catch {
      guard error.rawValue == ENOENT, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
      else { throw error }
      var parent = path[..<slash]
      while parent.hasFinalSlash { parent = Substring(parent.utf8.dropLast()) }
      guard !parent.isEmpty else { throw error }
      try makeWithParents(parent)
      _ = try SystemCalls.makeDirectory(String(path), in: AT_FDCWD)
    }
  }
}
