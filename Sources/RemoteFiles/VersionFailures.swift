internal import HTTPTransferCore

/// What has failed of one version, and what reads are told of it.
struct VersionFailures: Sendable {
  /// The last failure, whatever became of it.
  private(set) var last: FileError?
  /// What every further read of absent bytes gets at once; where the bytes are known to be wrong, every read.
  private(set) var permanent: FileError?
  /// Why the last request failed for all who might have waited; taken by who prefetches.
  private(set) var ofPrefetch: FileError?
  private var recent = RecentFailures()
  /// Whether another version is known to have taken this one's place.
  private(set) var isSuperseded = false

  static let superseded = FileError(
    .stale, "the remote file has changed since it was opened")

  /// Whether the server may be asked for bytes.
  var allowRequests: Bool { !isSuperseded && permanent == nil }

  mutating func supersede() { isSuperseded = true }

  /// The server has confirmed this version after all.
  mutating func reinstate() { isSuperseded = false }

  mutating func note(_ error: FileError) { last = error }

  /// The file cannot be had for now, whoever wants it.
  mutating func noteForAll(_ error: FileError) {
    last = error
    ofPrefetch = error
  }

  mutating func setPermanent(_ error: FileError?) { permanent = error }

  /// Why a request has failed for good since the last call.
  mutating func takeOfPrefetch() -> FileError? {
    defer { ofPrefetch = nil }
    return ofPrefetch
  }

  /// What has failed before does not concern who prefetches from now on.
  mutating func forgetPrefetch() { ofPrefetch = nil }

  /// Reads of `ranges` have failed: the same ones get the same answer for a moment.
  mutating func remember(
    _ ranges: [ByteRange], _ error: FileError, now: ContinuousClock.Instant
  ) {
    recent.remember(ranges, error, now: now)
  }

  /// What a read of `range`, which is absent, is told at once; nil where it is to wait.
  mutating func refusal(
    of range: ByteRange, pieces: PieceTable?, now: ContinuousClock.Instant
  ) -> FileError? {
    if isSuperseded { return Self.superseded }
    if let permanent { return permanent }
    if pieces?.isLost(range) == true { return .wrongPiece }
    return recent.error(in: range, now: now)
  }

  /// What reads are told that have waited for `timeout`: `cause` where it is not the server's, else the last
  /// failure.
  func lateness(after timeout: Duration, cause: String?) -> FileError {
    let reason = cause ?? last.map { "last failure: \($0.reason)" } ?? "the server sends nothing"
    // Not where the time was spent on something else than waiting for a server.
    let kept = last.map(\.code).flatMap { $0 == .invalidResponse || $0 == .unsigned ? $0 : nil }
    return FileError(kept ?? .timedOut, "no bytes within \(timeout): \(reason)")
  }
}
