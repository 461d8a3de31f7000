internal import HTTPTransferCore
internal import Logging
internal import Synchronization

/// The servers of one file, which its versions and questions share.
///
/// Only a file about which the list says more than a URL has a board.
///
/// Lock order: `servers` is a leaf.
final class SharedMirrors: Sendable {
  let details: SourceDetails
  private let servers: Mutex<MirrorSet>
  /// How many servers there are.
  let count: Int

  /// Creates the board.
  ///
  /// - Parameters:
  ///   - url: the URL of the file itself.
  ///   - details: what the list says besides.
  ///   - isSigned: whether a signer makes the URLs; it makes them for the file's own URL only.
  init(url: RemoteURL, details: SourceDetails, isSigned: Bool) {
    self.details = details
    let others = isSigned ? [] : details.mirrors
    let set = MirrorSet(urls: [url] + others, trust: details.trust, rests: Self.rests)
    count = set.count
    servers = Mutex(set)
  }

  /// A mount can let a failed server rest for long: readers have other servers, or wait anyway.
  private static let rests = RetryPolicy(
    base: .seconds(2), ceiling: .seconds(60), retryAfterCeiling: .seconds(60))

  func url(_ index: Int) -> RemoteURL { servers.withLock { $0[index].url } }

  /// A copy of the servers as they are now.
  var snapshot: MirrorSet { servers.withLock { $0 } }

  /// The server that has described the version, as the record names it: its URL without
  /// credentials.
  var reference: String? {
    let set = snapshot
    return set.reference.map { set[$0].url.redacted }
  }

  /// Adopts the server that the record of an earlier mount names as the one that described
  /// `content`.
  func recall(_ content: ContentVersion, of reference: String?) {
    guard let reference else { return }
    change { set in
      let candidates = set.mirrors.indices.filter { set[$0].url.redacted == reference }
      // Two servers that differ only in what the record leaves out cannot be told apart.
      if candidates.count == 1 { set.recalled(content, of: candidates[0]) }
    }
  }

  func change<Result: Sendable>(_ body: (inout MirrorSet) -> Result) -> Result {
    servers.withLock { body(&$0) }
  }

  /// How long a request to `index` may take to be answered, or to continue, before another server
  /// is asked.
  ///
  /// This is `timeout`, or less if another server is ready.
  func timeout(_ timeout: Duration, with index: Int, now: ContinuousClock.Instant) -> Duration {
    hasReady(besides: index, now: now) ? min(timeout, Self.spareTimeout) : timeout
  }

  /// A healthy server has answered by then, wherever it is; no reader should wait longer for bytes
  /// that another server can bring.
  private static let spareTimeout = Duration.seconds(3)

  func hasReady(besides index: Int, now: ContinuousClock.Instant = .now) -> Bool {
    servers.withLock { $0.hasReady(besides: index, now: now) }
  }

  /// Records a server that has failed for a reason that says nothing about its file.
  func failed(_ index: Int, _ error: FileError, retryAfter: Duration? = nil) {
    let isDenial = error.code == .missing || error.code == .denied
    servers.withLock {
      _ = $0.failed(
        index, reason: error.reason, isDenial: isDenial, retryAfter: retryAfter, now: .now)
    }
  }

  /// One error for the failures of several servers: the most hopeful code, with the reasons of all.
  ///
  /// A file is reported as missing only if every server says so.
  func combined(_ failures: [(index: Int, error: FileError)]) -> FileError? {
    guard let first = failures.first else { return nil }
    guard failures.count > 1 else { return first.error }
    let order: [FileError.Code] = [
      .unavailable, .exhausted, .timedOut, .invalidResponse, .disconnected, .unreachable, .refused,
      .rejected, .denied, .missing,
    ]
    let code = failures.map(\.error.code).min {
      (order.firstIndex(of: $0) ?? 0) < (order.firstIndex(of: $1) ?? 0)
    }
    let words = failures.map { "\(url($0.index).authority): \($0.error.reason)" }
    return FileError(code ?? first.error.code, words.joined(separator: "; "))
  }
}
