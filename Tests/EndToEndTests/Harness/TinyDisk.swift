import Glibc

/// A file system of a few bytes (tmpfs), to see what happens when a disk is full.
final class TinyDisk {
  /// Where it is mounted.
  let path: String
  private var isMounted = true

  /// Mounts it; only root may.
  ///
  /// - Parameters:
  ///   - path: an existing directory.
  ///   - byteCount: its capacity, which the kernel rounds up to whole pages.
  /// - Throws: `HarnessError` if this user or this container may not mount.
  init(at path: String, byteCount: Int64) throws {
    guard Host.isRoot else {
      throw HarnessError("a tiny disk is a mount of its own: it needs root")
    }
    guard mount("tmpfs", path, "tmpfs", 0, "size=\(byteCount),mode=0777") == 0 else {
      throw HarnessError.systemCall("mount of a tmpfs at \(path)")
    }
    self.path = path
  }

  deinit { unmount() }

  /// Takes it away with its files, even where some are open.
  func unmount() {
    guard isMounted else { return }
    isMounted = false
    _ = umount2(path, CInt(MNT_DETACH))
  }
}
