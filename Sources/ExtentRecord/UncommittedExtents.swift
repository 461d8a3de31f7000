/// What to do with extents that no COMMIT covers when an entry is opened.
public enum UncommittedExtents: Sendable {
  /// Read their bytes and keep those whose hash is the recorded one: where this process has written them.
  case verify
  /// As ``verify``, from the disk, for which it waits: the process that has written them may have ended after
  /// a sync that failed.
  case verifyOnDisk
  /// Drop them all. For the opening after a failed ``CacheEntry/syncData()``: the kernel may hold
  /// right bytes in memory, marked as written, that never reached the disk.
  case discard
}
