public import ExtentRecord
public import HTTPTransfer
internal import HTTPTransferCore
public import Logging
public import MountStatus
public import RangeCache

/// The files of one mount, as the file system sees them: finds them, fetches them in the background,
/// and ends them.
public final class FileEnvironment: Sendable {
  /// What the files and their versions share.
  let shared: MountEnvironment
  let listings = ListingRegistry()
  let listingBudget = ListingBudget()
  let keyOwners = CacheKeyOwners()
  private let prefetcher: Prefetcher

  public init(
    client: HTTPClient, cache: CacheDirectory, settings: FileSettings, cacheByteLimit: Int64?,
    logger: Logger
  ) {
    let context = MountContext(
      client: client, cache: cache, settings: settings, cacheByteLimit: cacheByteLimit,
      logger: logger)
    let evictor = CacheEvictor(context: context)
    // The cache grows by what is stored.
    let checkpoints = CheckpointScheduler(context: context) { evictor.enforceLimit() }
    let clock = DeadlineClock(context: context, checkpoints: checkpoints)
    let prefetcher = Prefetcher(context: context, clock: clock)
    self.prefetcher = prefetcher
    shared = MountEnvironment(
      context: context, clock: clock, checkpoints: checkpoints, evictor: evictor,
      wakePrefetcher: { prefetcher.wake() })
  }

  public var settings: FileSettings { shared.settings }
  public var logger: Logger { shared.logger }

  /// The keys of the cache entries that are never evicted.
  public var pinnedKeys: Set<CacheKey> { shared.cache.pinnedKeys }

  /// How the cache is, for `.status`.
  public var cacheStatus: CacheStatus {
    let report = shared.health.report
    return CacheStatus(error: report.error, failures: report.failureCount)
  }

  /// Makes the cache as small as it was asked to be, in the background; for the start of a mount.
  public func trimCache() { shared.evictor.trim() }

  /// Whether the certificates of servers are verified.
  public var verifiesServers: Bool { shared.client.configuration.verifiesServers }

  /// Runs `work` once the network thread has shown that it is alive: at once if there is no exchange
  /// that needs it.
  public func afterNetworkTurn(_ work: @escaping @Sendable () -> Void) {
    guard shared.client.activeExchangeCount > 0 else { return work() }
    shared.client.perform(work)
  }

  /// Runs `work` soon, after what was asked for before, on a thread that may wait for the disk.
  public func background(_ work: @escaping @Sendable () -> Void) { shared.background(work) }

  /// Sets what is done when bytes that readers have seen are known to be wrong: the kernel must
  /// forget them.
  public func onContentDropped(_ action: @escaping @Sendable (VersionID) -> Void) {
    shared.pages.set(action)
  }

  // MARK: Connections and rates

  /// The connections per file, for read-ahead; nil where each file finds its best number.
  public var connections: Int? { shared.connections }

  /// Sets the connections per file; ``RemoteFile/followSettings()`` has a file take it up.
  public func setConnections(_ count: Int?) { shared.connectionCounts.set(count) }

  /// Sets how many body bytes a second may come in all; nil for as many as will.
  public func setRateLimit(_ bytesPerSecond: Int64?) { shared.client.setRateLimit(bytesPerSecond) }

  /// How many may come in all; nil for as many as will.
  public var rateLimit: Int64? { shared.client.rateLimit }

  /// Sets how many body bytes a second of each of `files` may come; nil for as many as will.
  public func setRateLimit(_ bytesPerSecond: Int64?, of files: [RemoteFile]) {
    shared.client.setRateLimit(bytesPerSecond, of: files.map(\.rateLimit))
  }

  /// The limit that the list, or else the settings, give a file, in bytes per second; nil for none.
  public func listedRateLimit(of source: FileSource) -> Int64? {
    shared.listedRateLimit(of: source)
  }

  // MARK: Files

  /// Fetches whole files for nobody in particular, when their turns come.
  public func prefetch(_ files: [RemoteFile]) { prefetcher.start(files) }

  /// Takes ``prefetch(_:)`` back; what has been fetched stays.
  public func cancelPrefetch(of files: [RemoteFile]) { prefetcher.remove(files) }

  /// Compares all that is cached of files with the recorded hashes, in the background.
  public func verify(_ files: [RemoteFile]) {
    for file in files { file.verifyCached() }
  }

  /// The files that a list names keep the cache entries of their URLs; called before the mount shows
  /// them.
  public func reserveCacheKeys(for sources: [FileSource]) { keyOwners.reserve(for: sources) }

  /// The file for `source` of the list: the one that an earlier list named, if it is still in use
  /// and `mayContinue` says that nothing else shows it; otherwise a new one.
  public func file(
    of source: FileSource, key: CacheKey, mayContinue: (RemoteFile) -> Bool
  ) -> RemoteFile {
    keyOwners.file(of: source, key: key, in: shared, mayContinue: mayContinue)
  }

  // MARK: The end

  /// Fails every read that waits, also of files that the list no longer has.
  public func abandonReads() {
    prefetcher.end()
    shared.clock.abandonReads()
  }

  /// Ends what runs, answers what can be answered, and commits and stamps what is stored; call it
  /// once, when the kernel asks for nothing any more.
  ///
  /// Threads may still be at work then, for which the process must not wait: `_exit(2)`.
  public func end() {
    let evictor = shared.evictor
    MountEnd(
      context: shared.context, clock: shared.clock, firstBytes: shared.firstBytes,
      connectionCounts: shared.connectionCounts, markUsed: { evictor.markUsed() }
    ).run()
  }
}
