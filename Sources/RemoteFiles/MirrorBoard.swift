internal import HTTPTransferCore
internal import Logging
internal import Synchronization

/// What the versions and questions of one file share of its servers; only files have one of which a list
/// says more than a URL.
///
/// Lock order: `servers` is a leaf.
final class MirrorBoard: Sendable {
  let details: SourceDetails
  private let servers: Mutex<MirrorSet>
  /// How many servers there are.
  let count: Int

  /// - Parameters:
  ///   - url: the file's own.
  ///   - details: what the list says besides.
  ///   - isSigned: whether a signer makes the URLs that are asked, of the file's own one alone.
  init(url: RemoteURL, details: SourceDetails, isSigned: Bool) {
    self.details = details
    let others = isSigned ? [] : details.mirrors
    let set = MirrorSet(urls: [url] + others, trust: details.trust, rests: Self.rests)
    count = set.count
    servers = Mutex(set)
  }

  /// A mount has the time to let a server that has failed rest: readers have others, or wait anyway.
  private static let rests = RetryPolicy(
    base: .seconds(2), ceiling: .seconds(60), retryAfterCeiling: .seconds(60))

  func url(_ index: Int) -> RemoteURL { servers.withLock { $0[index].url } }

  /// The servers as they stand now.
  var snapshot: MirrorSet { servers.withLock { $0 } }

  /// What the record says of who has described the version: its URL without credentials.
  var definer: String? {
    let set = snapshot
    return set.definer.map { set[$0].url.redacted }
  }

  /// Takes up what the record of an earlier mount says of who has described the version `content`.
  func recall(_ content: ContentVersion, of definer: String?) {
    guard let definer else { return }
    change { set in
      let candidates = set.mirrors.indices.filter { set[$0].url.redacted == definer }
      // Two that differ in what is left out of the record cannot be told apart.
      if candidates.count == 1 { set.recalled(content, of: candidates[0]) }
    }
  }

  func change<Result: Sendable>(_ body: (inout MirrorSet) -> Result) -> Result {
    servers.withLock { body(&$0) }
  }

  /// How long a request to `index` may take to be answered, or to go on, before another server is asked:
  /// `patience`, or less where one can be.
  func patience(_ patience: Duration, with index: Int, now: ContinuousClock.Instant) -> Duration {
    hasReady(besides: index, now: now) ? min(patience, Self.sparePatience) : patience
  }

  /// A healthy server has answered by then, wherever it is; and nobody should wait longer for what another
  /// one can bring.
  private static let sparePatience = Duration.seconds(3)

  func hasReady(besides index: Int, now: ContinuousClock.Instant = .now) -> Bool {
    servers.withLock { $0.hasReady(besides: index, now: now) }
  }

  /// A server has failed for a reason that says nothing about its file.
  func failed(_ index: Int, _ error: FileError, retryAfter: Duration? = nil) {
    let isDenial = error.code == .missing || error.code == .denied
    servers.withLock {
      _ = $0.failed(
        index, reason: error.reason, isDenial: isDenial, retryAfter: retryAfter, now: .now)
    }
  }

  /// One error for the failures of several servers: the one that leaves most hope, with the words of all.
  ///
  /// That a file is not there is said only where every server says it.
  func combined(_ failures: [(index: Int, error: FileError)]) -> FileError? {
    guard let first = failures.first else { return nil }
    guard failures.count > 1 else { return first.error }
    let order: [FileError.Code] = [
      .unavailable, .timedOut, .invalidResponse, .disconnected, .unreachable, .refused, .denied,
      .missing,
    ]
    let code = failures.map(\.error.code).min {
      (order.firstIndex(of: $0) ?? 0) < (order.firstIndex(of: $1) ?? 0)
    }
    let words = failures.map { "\(url($0.index).authority): \($0.error.reason)" }
    return FileError(code ?? first.error.code, words.joined(separator: "; "))
  }
}
