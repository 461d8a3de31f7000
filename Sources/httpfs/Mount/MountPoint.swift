import CLinux
import FUSEMount
import Glibc
import LinuxSystem

/// The directory to mount on.
struct MountPoint {
  /// The absolute path, without symbolic links.
  let path: String

  /// Whether the mount will hide files that the user may not expect to vanish.
  let hidesFiles: Bool

  /// Checks `path`, and detaches what a dead daemon has left there.
  ///
  /// - Throws: ``CommandFailure`` if nothing can be mounted there.
  init(_ path: String) throws(CommandFailure) {
    guard access("/dev/fuse", F_OK) == 0 else {
      throw CommandFailure(
        "there is no /dev/fuse; load the kernel module (modprobe fuse), or give the container "
          + "the device")
    }
    // fusermount3 also opens the device with the user's own rights.
    guard geteuid() == 0 || access("/dev/fuse", R_OK | W_OK) == 0 else {
      throw CommandFailure(
        "this user may not open /dev/fuse (\(ErrorNumber.last)); let root run "
          + "'chmod 666 /dev/fuse', which is what udev does")
    }
    let wasMounted = try Self.clearAwayDeadMount(at: path)
    guard let resolved = realpath(path, nil) else {
      guard errno == ENOENT else { throw CommandFailure("cannot use mount point '\(path)'", .last) }
      throw CommandFailure("mount point '\(path)' does not exist; create it with mkdir")
    }
    defer { free(resolved) }
    let absolute = String(cString: resolved)
    var attributes = stat()
    guard stat(absolute, &attributes) == 0 else {
      throw CommandFailure("cannot use mount point '\(path)'", .last)
    }
    guard attributes.st_mode & S_IFMT == S_IFDIR else {
      throw CommandFailure("mount point '\(path)' is not a directory")
    }
    if let mount = MountTable.currentMount(at: absolute),
      mount.fileSystemType.hasPrefix("fuse")
    {
      throw CommandFailure(
        "mount point '\(path)' is busy: \(mount.source) (\(mount.fileSystemType)) is mounted "
          + "there; unmount it first with 'httpfs unmount \(path)'")
    }
    self.path = absolute
    // The files below a dead mount were hidden before.
    hidesFiles = !wasMounted && !Self.isEmpty(absolute)
  }

  /// Detaches mounts whose daemons have died, of which several may be stacked.
  ///
  /// Another process may do that at the same time.
  ///
  /// - Returns: whether there was such a mount.
  private static func clearAwayDeadMount(at path: String) throws(CommandFailure) -> Bool {
    var wasMounted = false
    for _ in 0..<deadMountLimit where isFUSEMountDead(at: path) {
      wasMounted = true
      do {
        try Unmounting(mount: httpfsMount(at: path), lazy: true).perform()
      } catch {
        guard isFUSEMountDead(at: path) else { return true }
        throw error
      }
    }
    return wasMounted
  }

  /// Whether a directory is empty, or cannot be read.
  private static func isEmpty(_ path: String) -> Bool {
    guard let stream = opendir(path) else { return true }
    defer { closedir(stream) }
    // Two entries are `.` and `..`.
    for _ in 0..<3 where readdir(stream) == nil { return true }
    return false
  }

  private static let deadMountLimit = 8
}
