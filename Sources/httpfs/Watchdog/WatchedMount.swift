import CLinux
import FUSEMount
import Glibc
import LinuxSystem

/// The mount of a watchdog, identified by its device: a later mount at the same place is not
/// affected.
struct WatchedMount: Sendable {
  /// The absolute path, without symbolic links.
  let mountpoint: String
  /// Major and minor number: `0:52`.
  let device: String

  private var entry: MountTable.Entry? {
    guard let entry = MountTable.currentMount(at: mountpoint), entry.device == device,
      entry.fileSystemType == "fuse.httpfs"
    else { return nil }
    return entry
  }

  /// Whether the kernel lists it as the topmost mount at its place.
  var isListed: Bool { entry != nil }

  /// Whether it is listed but has no daemon.
  ///
  /// Linux reuses device numbers, but a new mount in place of the dead one answers.
  var isDead: Bool { isListed && isFUSEMountDead(at: mountpoint) }

  /// Sends a request to the daemon; returns when it has answered, or when its connection to the
  /// kernel is gone.
  func ask() {
    var status = statvfs()
    _ = statvfs(mountpoint, &status)
  }

  /// Ends the connection between kernel and daemon: all requests of readers fail at once.
  func abort() {
    if writeAbort() { return }
    // `/sys/fs/fuse/connections` is not mounted everywhere. A forced unmount aborts too, but only
    // root may request it. It does not remove a mount that is in use, as this one is through the
    // descriptor.
    guard geteuid() == 0 else { return }
    let descriptor = open(mountpoint, Self.pathOnly | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    umount2(mountpoint, Int32(MNT_FORCE) | Int32(UMOUNT_NOFOLLOW))
  }

  /// `O_PATH` of Linux's fcntl.h, which Swift does not import: a descriptor that sends no request
  /// to the mount.
  private static let pathOnly: Int32 = 0o10_000_000

  private func writeAbort() -> Bool {
    guard let minor = device.split(separator: ":").last else { return false }
    let path = "/sys/fs/fuse/connections/\(minor)/abort"
    return (try? StreamCalls.write("1", toFile: path)) != nil
  }
}

/// Whether `path` is a FUSE mount whose daemon is gone.
///
/// It uses statfs(2), whose reply the kernel does not cache. A stat(2) of a mount that died a
/// moment ago would succeed with the daemon's last answer.
func isFUSEMountDead(at path: String) -> Bool {
  var status = statvfs()
  return statvfs(path, &status) != 0 && (errno == ENOTCONN || errno == ECONNABORTED)
}
