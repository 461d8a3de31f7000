internal import HTTPTransferCore

/// The failures of one version, and the errors that its reads get.
struct VersionFailures: Sendable {
  /// The last failure, even if it was overcome.
  private(set) var last: FileError?
  /// The immediate error of every further read of absent bytes; if the bytes are known to be wrong,
  /// of every read.
  private(set) var permanent: FileError?
  /// Why the last request failed for all possible readers; taken by the prefetcher.
  private(set) var ofPrefetch: FileError?
  private var recent = RecentFailures()
  /// Whether another version is known to have replaced this one.
  private(set) var isSuperseded = false

  static let superseded = FileError(
    .stale, "the remote file has changed since it was opened")

  /// Whether the server may be asked for bytes.
  var allowRequests: Bool { !isSuperseded && permanent == nil }

  mutating func supersede() { isSuperseded = true }

  /// Reverts ``supersede()``, because the server has confirmed this version.
  mutating func reinstate() { isSuperseded = false }

  mutating func note(_ error: FileError) { last = error }

  /// Records that the file cannot be had for now, by any reader.
  mutating func recordForAll(_ error: FileError) {
    last = error
    ofPrefetch = error
  }

  mutating func setPermanent(_ error: FileError?) { permanent = error }

  /// Why a request has failed permanently since the last call.
  mutating func takeOfPrefetch() -> FileError? {
    defer { ofPrefetch = nil }
    return ofPrefetch
  }

  /// Forgets earlier failures, which do not concern a new prefetch.
  mutating func forgetPrefetch() { ofPrefetch = nil }

  /// Remembers failed reads of `ranges`: the same reads get the same error for a moment.
  mutating func remember(
    _ ranges: [ByteRange], _ error: FileError, now: ContinuousClock.Instant
  ) {
    recent.remember(ranges, error, now: now)
  }

  /// The immediate error of a read of `range`, which is absent; nil if it must wait.
  mutating func refusal(
    of range: ByteRange, pieces: PieceTable?, now: ContinuousClock.Instant
  ) -> FileError? {
    if isSuperseded { return Self.superseded }
    if let permanent { return permanent }
    if pieces?.isLost(range) == true { return .wrongPiece }
    return recent.error(in: range, now: now)
  }

  /// The error of reads that have waited for `timeout`.
  ///
  /// The reason is `cause` if the server is not to blame, otherwise the last failure.
  func lateness(after timeout: Duration, cause: String?) -> FileError {
    let reason = cause ?? last.map { "last failure: \($0.reason)" } ?? "the server sends nothing"
    // Not if the time was spent on other things than waiting for a server.
    let kept = last.map(\.code).flatMap {
      [.invalidResponse, .rejected, .unsigned].contains($0) ? $0 : nil
    }
    return FileError(kept ?? .timedOut, "no bytes within \(timeout): \(reason)")
  }
}
