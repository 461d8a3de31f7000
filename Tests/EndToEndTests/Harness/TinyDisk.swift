import Glibc

/// A file system of a few bytes (tmpfs), for tests of a full disk.
final class TinyDisk {
  /// The mount point.
  let path: String
  private var isMounted = true

  /// Mounts the file system; this needs root.
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

  /// Detaches it with its files, even if some are open.
  func unmount() {
    guard isMounted else { return }
    isMounted = false
    _ = umount2(path, CInt(MNT_DETACH))
  }
}
