import FUSEMount
import Glibc
import LinuxSystem

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
      "nothing is mounted at '\(path)'; 'findmnt -t fuse.httpfs' shows the mounts that there are")
  }
  guard entry.fileSystemType == "fuse.httpfs" else {
    throw CommandFailure(
      "'\(path)' is not an httpfs mount but \(entry.fileSystemType); "
        + "'findmnt -t fuse.httpfs' shows the mounts that there are")
  }
  return entry
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
