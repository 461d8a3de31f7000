/// What a file of the mount is doing; the words are those of `.status` and `.status.json`.
public enum FileState: String, Sendable, Hashable, CaseIterable, Decodable {
  /// Nothing is known of the remote file yet: it has not been looked up.
  case unknown
  /// Known, not complete, and nothing is being fetched.
  case idle
  /// Bytes are being fetched.
  case downloading
  /// The whole is fetched in the background, or will be when its turn comes; nobody waits for it.
  case prefetching
  /// Only what a read waits for is fetched, as was asked for.
  case paused
  /// Every byte is in the cache.
  case complete
  /// A read waits and no bytes arrive: connecting, backing off or gated by the host.
  case waiting
  /// The remote file has changed: handles of the old version read only what is cached.
  case stale
  /// The origin cannot be reached: what is cached stays readable.
  case offline
  /// The last attempt failed for good (`last_error` says why); a new open tries again.
  case failed
  /// The server gives no ranges or no length: the body is streamed once, from its start.
  case streaming
}
