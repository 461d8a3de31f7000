internal import HTTPTransferCore

/// What has failed of one version, and what reads are told of it.
struct VersionFailures: Sendable {
  private struct Known: Sendable {
    var last: FileError?
    var permanent: FileError?
    var ofPrefetch: FileError?
    var recent = RecentFailures()
  }

  /// On the heap once something has failed: nothing has for most files of a long list.
  private indirect enum State: Sendable {
    case clean
    case failed(Known)
  }

  private var state = State.clean

  private var known: Known {
    get { if case .failed(let known) = state { known } else { Known() } }
    set { state = .failed(newValue) }
  }

  /// The last failure, whatever became of it.
  var last: FileError? { known.last }

  /// What every further read of absent bytes gets at once; where the bytes are known to be wrong, every read.
  var permanent: FileError? { known.permanent }

  /// Why the last request failed for all who might have waited; taken by who prefetches.
  var ofPrefetch: FileError? { known.ofPrefetch }

  mutating func note(_ error: FileError) { known.last = error }

  /// The file cannot be had for now, whoever wants it.
  mutating func noteForAll(_ error: FileError) {
    known.last = error
    known.ofPrefetch = error
  }

  mutating func setPermanent(_ error: FileError?) {
    if error != nil || permanent != nil { known.permanent = error }
  }

  /// What has failed before does not concern who prefetches from now on.
  mutating func forgetPrefetch() { if ofPrefetch != nil { known.ofPrefetch = nil } }

  /// Reads of `ranges` have failed: the same ones get the same answer for a moment.
  mutating func remember(
    _ ranges: [ByteRange], _ error: FileError, now: ContinuousClock.Instant
  ) {
    known.recent.remember(ranges, error, now: now)
  }

  /// What reads of `range` have failed for a moment ago; nil where they have not.
  mutating func error(in range: ByteRange, now: ContinuousClock.Instant) -> FileError? {
    if case .clean = state { return nil }
    return known.recent.error(in: range, now: now)
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
