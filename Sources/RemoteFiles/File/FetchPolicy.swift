/// What the user requested for one file, whatever its version.
struct FetchPolicy: Sendable, Equatable {
  /// Whether only bytes that a read waits for may be fetched.
  var isPaused = false
  /// Whether the whole file is to be fetched in the background.
  var isPrefetched = false
  /// Whether the prefetch may proceed now: its turn has come, and no read waits for other bytes.
  var mayPrefetch = false
}
