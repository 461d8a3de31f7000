/// How to treat extents that no COMMIT covers when an entry is opened.
package enum UncommittedExtents: Sendable {
  /// Read their bytes and keep those with the recorded hash. For entries that this process has
  /// written.
  case verify
  /// Like ``verify``, but read from the disk and wait for it: another process wrote them and may
  /// have ended after a failed sync.
  case verifyOnDisk
  /// Drop them all. For opening after a failed ``CacheEntry/syncData()``: the kernel may hold right
  /// bytes in memory, marked as written, that never reached the disk.
  case discard
}
