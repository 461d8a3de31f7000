import FUSEMount
import Glibc
import LinuxSystem
import TextFormat

/// The mounts that this process sees now.
func currentMountTable() throws(CommandFailure) -> MountTable {
  do throws(ErrorNumber) {
    return try MountTable.current()
  } catch {
    throw CommandFailure("cannot read /proc/self/mountinfo", error)
  }
}

/// The httpfs mount at `path`, which may be relative or contain symbolic links.
///
/// - Throws: ``CommandFailure`` if there is none.
func httpfsMount(at path: String) throws(CommandFailure) -> MountTable.Entry {
  let resolved: String
  do {
    resolved = try resolvedMountPoint(path)
  } catch {
    throw CommandFailure("cannot find '\(path)'", error)
  }
  guard let entry = try currentMountTable().mount(at: resolved) else {
    throw CommandFailure(
      "nothing is mounted at '\(path)'; 'httpfs mounts' lists them")
  }
  guard entry.fileSystemType == "fuse.httpfs" else {
    throw CommandFailure(
      "'\(path)' is not an httpfs mount but \(entry.fileSystemType); "
        + "'httpfs mounts' lists them")
  }
  return entry
}

/// All httpfs mounts that this process sees, hidden ones excepted.
func httpfsMounts() throws(CommandFailure) -> [MountTable.Entry] {
  let table = try currentMountTable()
  return table.entries.filter {
    $0.fileSystemType == "fuse.httpfs" && table.mount(at: $0.mountpoint) == $0
  }
}

/// The mount point that the user named, or the only httpfs mount that there is.
func mountPointOrOnlyOne(_ path: String?) throws(CommandFailure) -> String {
  if let path { return path }
  let mounts = try httpfsMounts()
  guard mounts.count != 1 else { return mounts[0].mountpoint }
  guard !mounts.isEmpty else {
    throw CommandFailure("there is no httpfs mount; 'httpfs mount SOURCE MOUNTPOINT' makes one")
  }
  throw CommandFailure(
    "there are \(mounts.count) httpfs mounts; name one of "
      + mounts.map { "'\(escapingControls($0.mountpoint))'" }.joined(separator: ", "))
}

/// The httpfs mount that contains `path`, and the name of the file below it; nil if none does.
///
/// The file need not exist, and the mount is not asked.
func httpfsMount(containing path: String) -> (mount: MountTable.Entry, name: String)? {
  guard let resolved = try? pathBelowResolvedParent(path), let mounts = try? httpfsMounts() else {
    return nil
  }
  for mount in mounts where resolved.hasPrefix(mount.mountpoint + "/") {
    return (mount, String(resolved.dropFirst(mount.mountpoint.count + 1)))
  }
  return nil
}

/// Like ``httpfsMount(at:)``, but without a request to the mount itself if possible, because a
/// hanging mount would not answer.
func httpfsMountUntouched(at path: String) throws(CommandFailure) -> MountTable.Entry {
  if let resolved = try? pathBelowResolvedParent(path),
    let entry = try currentMountTable().mount(at: resolved),
    entry.fileSystemType == "fuse.httpfs"
  {
    return entry
  }
  return try httpfsMount(at: path)
}

/// The absolute path without symbolic links.
///
/// It also works for a mount whose daemon has died: only the directory above is accessible then.
private func resolvedMountPoint(_ path: String) throws(ErrorNumber) -> String {
  do {
    return try realPath(path)
  } catch {
    guard error.rawValue == ENOTCONN || error.rawValue == EIO || error.rawValue == EACCES else {
      throw error
    }
    guard let resolved = try pathBelowResolvedParent(path) else { throw error }
    return resolved
  }
}

/// The path with its last component unresolved, below the real path of the parent directory; nil if
/// the path has no last component.
private func pathBelowResolvedParent(_ path: String) throws(ErrorNumber) -> String? {
  var trimmed = Substring(path)
  while trimmed.count > 1, trimmed.hasSuffix("/") { trimmed.removeLast() }
  let nameStart = trimmed.lastIndex(of: "/").map { trimmed.index(after: $0) }
  let name = trimmed[(nameStart ?? trimmed.startIndex)...]
  guard !name.isEmpty, name != ".", name != ".." else { return nil }
  let parent = nameStart.map { String(trimmed[..<$0]) } ?? "."
  let directory = try realPath(parent)
  return directory == "/" ? "/\(name)" : "\(directory)/\(name)"
}

/// `realpath(3)`.
private func realPath(_ path: String) throws(ErrorNumber) -> String {
  guard let resolved = realpath(path, nil) else { throw .last }
  defer { free(resolved) }
  return String(cString: resolved)
}
