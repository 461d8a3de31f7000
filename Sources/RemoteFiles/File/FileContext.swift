internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import Synchronization

/// What the versions of a file share: its servers, cache key, the user's policy and the counters
/// for `.status`.
///
/// Lock order: `entryLock` (over I/O) comes before the locks of the file and its versions; `policy`
/// and `counters` are leaves, also below a version's state.
final class FileContext: Sendable {
  let environment: MountEnvironment
  let cacheKey: CacheKey
  let servers: FileServers

  /// Guards the opening and creation of the cache entry, which is I/O, for all versions of the
  /// file: they share the entry's name.
  ///
  /// It is taken on threads that may wait for the disk, never on the path of a read.
  let entryLock = Mutex(())
  let policy = Mutex(FetchPolicy())
  private let counters = Mutex(FileStatistics())

  init(source: FileSource, cacheKey: CacheKey, environment: MountEnvironment) {
    self.cacheKey = cacheKey
    self.environment = environment
    servers = FileServers(
      source: source, settings: environment.settings, logger: environment.logger,
      rateLimit: RateLimit(bytesPerSecond: environment.listedRateLimit(of: source)))
  }

  // MARK: Servers

  var source: FileSource { servers.source }
  var mirrors: SharedMirrors? { servers.mirrors }
  var origins: [String] { servers.origins }

  func url(ofMirror mirror: Int) -> RemoteURL { servers.url(ofMirror: mirror) }

  func request(range: ByteRange?, at url: RemoteURL, mirror: Int) -> ExchangeRequest {
    var request = servers.request(range: range, at: url, mirror: mirror)
    request.gate = FileGate(servers: servers, outages: environment.outages, mirror: mirror)
    return request
  }

  func recordAnswer(from url: RemoteURL, asked: RemoteURL, mirror: Int) {
    servers.recordAnswer(from: url, asked: asked, mirror: mirror)
  }

  func recordRefusal(of asked: RemoteURL, mirror: Int) -> ResourceLocation.Refusal {
    servers.recordRefusal(of: asked, mirror: mirror)
  }

  func refusal(_ verdict: ResponseVerdict, mirror: Int) -> FileError {
    servers.refusal(verdict, mirror: mirror)
  }

  func isOneOfSeveral(_ index: Int) -> Bool { servers.isOneOfSeveral(index) }

  func refuseMirror(_ index: Int, _ reason: String) { servers.refuseMirror(index, reason) }

  // MARK: Outages

  /// Records the head of the final answer of the server `mirror`.
  func recordHead(mirror: Int) { servers.setDeadEnd(nil, ofMirror: mirror) }

  /// Records that an exchange, which began at `asked`, has failed before a head.
  ///
  /// - Returns: whether the next request to the server `mirror` goes to another URL.
  func recordFailure(
    _ error: ExchangeError, asked: RemoteURL, mirror: Int, _ metrics: ExchangeMetrics
  ) -> Bool {
    OutageScout.send(after: error, from: url(ofMirror: mirror), context: environment.context)
    // An exchange that sent nothing has followed no redirect.
    if metrics.requests > 0, error.url.origin != asked.origin {
      servers.setDeadEnd(error.isUnreachable ? error.url : nil, ofMirror: mirror)
    }
    return error.mayHaveMoved && servers.recordFailure(of: asked, mirror: mirror)
  }

  /// Records that the server `mirror` cannot serve the request to `asked` now.
  ///
  /// - Returns: whether the next request to it goes to another URL.
  func recordUnavailable(_ asked: RemoteURL, mirror: Int) -> Bool {
    servers.recordFailure(of: asked, mirror: mirror)
  }

  /// Records a failed request to the server `mirror`.
  ///
  /// - Returns: whether every server of the file has been unreachable for too long, so that a retry
  ///   would not help.
  func recordOutage(_ error: FileError, from mirror: Int) -> Bool {
    let outages = environment.outages
    guard outages.record(error, now: .now) else { return false }
    guard let set = mirrors?.snapshot else { return true }
    return set.trusted.allSatisfy { index in
      index == mirror || outages.isGone(set[index].url.origin)
        || servers.deadEnd(ofMirror: index).map { outages.isGone($0.origin) } == true
    }
  }

  // MARK: Counters

  /// The counters so far.
  var statistics: FileStatistics { counters.withLock { $0 } }

  func recordFetched(_ byteCount: Int) {
    counters.withLock {
      $0.fetchedByteCount += Int64(byteCount)
      $0.speed.note(byteCount: byteCount, now: .now)
    }
  }

  /// Records damaged bytes in the cache.
  func recordDamage(_ byteCount: Int64) {
    counters.withLock { $0.damagedByteCount = $0.damagedByteCount.saturatingSum(byteCount) }
  }

  func recordRequests(_ metrics: ExchangeMetrics) {
    let second = MonotonicSeconds.sinceStart
    counters.withLock {
      $0.requestCount += metrics.requests
      $0.requests.note(metrics.requests, second: second)
    }
  }

  /// Records whether the last attempt to ask the server failed.
  func recordOffline(_ isOffline: Bool) { counters.withLock { $0.isOffline = isOffline } }

  /// Records a request that is delayed, with the reason that `.status` shows.
  func recordDelay(_ error: FileError) { counters.withLock { $0.lastError = error.reason } }

  /// The process lacks descriptors for the file.
  ///
  /// Each store may find that, so only the first one logs it.
  func recordShortage(_ error: FileError) {
    let former = counters.withLock { counters in
      defer { counters.lastError = error.reason }
      return counters.lastError
    }
    if former == error.reason { return }
    environment.logger.warning(
      "short of descriptors",
      metadata: ["file": "\(source.path)", "reason": "\(error.reason)"])
  }

  func recordFailure(_ error: FileError, isRetried: Bool) {
    counters.withLock {
      // A request that is repeated needs no user.
      $0.lastError = isRetried ? error.reason : error.advisedReason
      if isRetried { $0.retryCount += 1 }
    }
    let source = source
    environment.logger.log(
      level: isRetried ? .notice : environment.failureLevel, "\(isRetried ? "retrying" : "failed")",
      metadata: [
        "file": "\(source.path)", "url": "\(source.url.redacted)", "reason": "\(error.reason)",
      ])
  }
}
