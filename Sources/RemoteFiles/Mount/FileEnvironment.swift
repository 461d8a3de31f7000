package import ExtentRecord
package import HTTPTransfer
internal import HTTPTransferCore
package import Logging
package import MountStatus
package import RangeCache
internal import Synchronization

/// The files of one mount, as the file system sees them.
package final class FileEnvironment: Sendable {
  /// The environment that the files and their versions share.
  let shared: MountEnvironment
  let listings = ListingRegistry()
  let listingBudget = ListingBudget()
  let keyOwners = CacheKeyOwners()
  private let prefetcher: Prefetcher
  private let checkpoints: CheckpointScheduler

  package init(
    client: ExchangeClient, cache: CacheDirectory, settings: FileSettings, cacheByteLimit: Int64?,
    logger: Logger
  ) {
    let context = MountContext(
      client: client, cache: cache, settings: settings, cacheByteLimit: cacheByteLimit,
      logger: logger)
    let evictor = CacheEvictor(context: context)
    // The cache grows by stored bytes, so its limit is enforced after each checkpoint.
    let checkpoints = CheckpointScheduler(context: context) { evictor.enforceLimit() }
    let clock = DeadlineClock(context: context, checkpoints: checkpoints)
    let prefetcher = Prefetcher(context: context, clock: clock)
    self.prefetcher = prefetcher
    self.checkpoints = checkpoints
    shared = MountEnvironment(
      context: context, clock: clock, checkpoints: checkpoints, evictor: evictor,
      wakePrefetcher: { prefetcher.wake() })
  }

  package var settings: FileSettings { shared.settings }
  package var logger: Logger { shared.logger }

  /// The keys of the cache entries that are never evicted.
  package var pinnedKeys: Set<CacheKey> { shared.cache.pinnedKeys }

  /// The state of the cache, for `.status`.
  package var cacheStatus: CacheStatus {
    let report = shared.health.report
    return CacheStatus(error: report.error, failures: report.failureCount)
  }

  /// Says whether the sources are being checked before the mount: failures are then told by the
  /// check, and the log has them at the level info.
  package func setChecking(_ isChecking: Bool) {
    shared.context.isChecking.store(isChecking, ordering: .relaxed)
  }

  /// Shrinks the cache to its limit in the background; for the start of a mount.
  package func trimCache() { shared.evictor.trim() }

  /// Whether the certificates of servers are verified.
  package var verifiesServers: Bool { shared.client.configuration.verifiesServers }

  /// Runs `work` when the network thread has proven alive: immediately if no exchange needs it.
  package func afterNetworkTurn(_ work: @escaping @Sendable () -> Void) {
    guard shared.client.activeExchangeCount > 0 else { return work() }
    shared.client.perform(work)
  }

  /// Runs `work` soon, after earlier work, on a thread that may wait for the disk.
  package func background(_ work: @escaping @Sendable () -> Void) { shared.background(work) }

  /// Sets the action for bytes that readers have seen and that turn out wrong: the kernel must
  /// forget them.
  package func onContentDropped(_ action: @escaping @Sendable (VersionID) -> Void) {
    shared.pages.set(action)
  }

  // MARK: Connections and rates

  /// The connections per file, for read-ahead; nil if each file finds its best number.
  package var connections: Int? { shared.connections }

  /// Sets the connections per file; ``RemoteFile/followSettings()`` makes a file adopt them.
  package func setConnections(_ count: Int?) { shared.connectionCounts.set(count) }

  /// Sets the limit of body bytes per second of the mount; nil for no limit.
  package func setRateLimit(_ bytesPerSecond: Int64?) { shared.client.setRateLimit(bytesPerSecond) }

  /// The limit of body bytes per second of the mount; nil for no limit.
  package var rateLimit: Int64? { shared.client.rateLimit }

  /// How long reads wait for servers.
  package var timeouts: TimeoutStatus {
    let settings = shared.settings
    return TimeoutStatus(
      readSeconds: settings.readTimeout / .seconds(1),
      firstAnswerSeconds: settings.firstAnswerTimeout / .seconds(1),
      outageSeconds: settings.outageTimeout / .seconds(1))
  }

  /// Sets the limit of body bytes per second for each of `files`; nil for no limit.
  package func setRateLimit(_ bytesPerSecond: Int64?, of files: [RemoteFile]) {
    shared.client.setRateLimit(bytesPerSecond, of: files.map(\.rateLimit))
  }

  /// The limit that the list, or else the settings, give a file, in bytes per second; nil for no
  /// limit.
  package func listedRateLimit(of source: FileSource) -> Int64? {
    shared.listedRateLimit(of: source)
  }

  // MARK: Files

  /// Fetches whole files without a reader, when their turns come.
  package func prefetch(_ files: [RemoteFile]) { prefetcher.start(files) }

  /// Cancels ``prefetch(_:)``; bytes that have been fetched stay.
  package func cancelPrefetch(of files: [RemoteFile]) { prefetcher.remove(files) }

  /// Compares all cached bytes of `files` with their recorded hashes, in the background.
  package func verify(_ files: [RemoteFile]) {
    for file in files { file.verifyCached() }
  }

  /// Reserves the cache keys of the files that a list names; call it before the mount shows them.
  package func reserveCacheKeys(for sources: [FileSource]) { keyOwners.reserve(for: sources) }

  /// The file for `source` of the list.
  ///
  /// This is the file of an earlier list if it is still in use and `mayContinue` confirms that it
  /// is not shown elsewhere; otherwise a new one.
  package func file(
    of source: FileSource, key: CacheKey, mayContinue: (RemoteFile) -> Bool
  ) -> RemoteFile {
    keyOwners.file(of: source, key: key, in: shared, mayContinue: mayContinue)
  }

  // MARK: Completion

  /// Fails every waiting read, also of files that the list no longer has.
  package func abandonReads() {
    prefetcher.end()
    shared.clock.abandonReads()
  }

  /// Ends all work, answers what can be answered, and commits and stamps what is stored.
  ///
  /// Call it once, when the kernel sends no more requests. Some threads may still be busy
  /// afterwards, and the process must not wait for them: use `_exit(2)`.
  package func end() {
    let evictor = shared.evictor
    MountEnd(
      context: shared.context, clock: shared.clock, checkpoints: checkpoints,
      firstBytes: shared.firstBytes, connectionCounts: shared.connectionCounts,
      markUsed: { evictor.markUsed() }
    ).run()
  }
}
