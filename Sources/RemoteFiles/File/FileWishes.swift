/// What the user has asked for one file, whichever its version is.
struct FileWishes: Sendable, Equatable {
  /// Whether only what a read waits for may be fetched.
  var isPaused = false
  /// Whether the whole is to be fetched in the background.
  var isPrefetched = false
  /// Whether that may go on now: its turn has come, and nobody waits for other bytes.
  var mayPrefetch = false
}
