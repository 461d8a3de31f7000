/// What to do with extents that no COMMIT covers when an entry is opened.
public enum UncommittedExtents: Sendable {
  /// Read their bytes and keep those whose hash is the recorded one: the normal case.
  case verify
  /// Drop them all. For the opening after a failed ``CacheEntry/syncData()``: the kernel may hold
  /// right bytes in memory, marked as written, that never reached the disk.
  case discard
}
