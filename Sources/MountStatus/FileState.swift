/// The state of a file of the mount; the words are those of `.status` and `.status.json`.
package enum FileState: String, Sendable, Hashable, CaseIterable, Decodable {
  /// Nothing is known of the remote file: no program has looked it up yet.
  case unknown
  /// Known, not complete, and nothing is being fetched.
  case idle
  /// Bytes are being fetched.
  case downloading
  /// The whole file is fetched in the background, or is queued for it; no read waits for it.
  case prefetching
  /// Paused on request: only what a read waits for is fetched.
  case paused
  /// Every byte is in the cache.
  case complete
  /// A read or open waits and no bytes arrive: connecting, backing off, or deferred by the host.
  case waiting
  /// The remote file has changed: handles of the old version read only what is cached.
  case stale
  /// The origin cannot be reached: what is cached stays readable.
  case offline
  /// The last attempt failed permanently (`last_error` says why); the next open tries again.
  case failed
  /// The server gives no ranges or no length: the body is streamed once, from its start.
  case streaming
}
