import FUSEMount
import Glibc
import MountStatus

/// The mount that a watchdog watches over, known by its device: whatever else is mounted there
/// later is none of its business.
struct WatchedMount: Sendable {
  /// The absolute path, without symbolic links.
  let mountpoint: String
  /// Major and minor number: `0:52`.
  let device: String

  private var entry: MountTable.Entry? {
    guard let entry = MountTable.current()?.mount(at: mountpoint), entry.device == device,
      entry.fileSystemType == "fuse.httpfs"
    else { return nil }
    return entry
  }

  /// Whether it is there, and on top of what else is mounted there.
  var isListed: Bool { entry != nil }

  /// Whether it is there without a daemon.
  ///
  /// The number of a device is used again: a new mount in the place of the dead one answers.
  var isDead: Bool { isListed && isFUSEMountDead(at: mountpoint) }

  /// Asks the daemon for a sign of life; returns when it has answered, or when its connection to
  /// the kernel is gone.
  func ask() {
    var status = statvfs()
    _ = statvfs(mountpoint, &status)
  }

  /// Ends the connection between kernel and daemon: every request of a reader fails at once.
  func abort() {
    if writeAbort() { return }
    // `/sys/fs/fuse/connections` is not mounted everywhere. A forced unmount aborts as well, but
    // only root may ask for it; it leaves a mount that is in use, as this one is by the descriptor.
    guard geteuid() == 0 else { return }
    let descriptor = open(mountpoint, Self.pathOnly | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    umount2(mountpoint, Int32(MNT_FORCE) | Int32(UMOUNT_NOFOLLOW))
  }

  /// `O_PATH` of Linux's fcntl.h, which Swift does not see: a descriptor that asks the mount nothing.
  private static let pathOnly: Int32 = 0o10_000_000

  private func writeAbort() -> Bool {
    guard let minor = device.split(separator: ":").last else { return false }
    let descriptor = open("/sys/fs/fuse/connections/\(minor)/abort", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return write(descriptor, "1", 1) == 1
  }
}

/// Whether `path` is a FUSE mount whose daemon is gone.
///
/// By statfs(2), of which the kernel keeps no answer: a stat(2) of a mount that died a moment ago
/// succeeds with what the daemon had said.
func isFUSEMountDead(at path: String) -> Bool {
  var status = statvfs()
  return statvfs(path, &status) != 0 && (errno == ENOTCONN || errno == ECONNABORTED)
}
