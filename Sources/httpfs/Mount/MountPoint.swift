import CLinux
import FUSEMount
import Glibc
import LinuxSystem

/// Prepares the directory to mount on.
enum MountPoint {
  /// Checks `path`, detaches what a dead daemon has left there, and returns the absolute path.
  ///
  /// - Throws: ``CommandFailure`` if nothing can be mounted there.
  static func prepare(_ path: String) throws(CommandFailure) -> String {
    guard access("/dev/fuse", F_OK) == 0 else {
      throw CommandFailure(
        "there is no /dev/fuse; load the kernel module (modprobe fuse), or give the container "
          + "the device")
    }
    // fusermount3 also opens the device with the user's own rights.
    guard geteuid() == 0 || access("/dev/fuse", R_OK | W_OK) == 0 else {
      throw CommandFailure(
        "this user may not open /dev/fuse; let root run 'chmod 666 /dev/fuse', which is what udev "
          + "does", .last)
    }
    try clearAwayDeadMount(at: path)
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
    return absolute
  }

  /// Detaches mounts whose daemons have died, of which several may be stacked.
  ///
  /// Another process may do that at the same time.
  private static func clearAwayDeadMount(at path: String) throws(CommandFailure) {
    for _ in 0..<deadMountLimit where isFUSEMountDead(at: path) {
      do {
        try Unmounting(mount: httpfsMount(at: path), lazy: true).perform()
      } catch {
        guard isFUSEMountDead(at: path) else { return }
        throw error
      }
    }
  }

  private static let deadMountLimit = 8
}
