internal import Dispatch
internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// The environment that the files of a mount and their versions share.
///
/// It has the client, the cache, the settings, and the parts that watch deadlines, memory and disk.
/// It knows files and versions only by protocols.
final class MountEnvironment: Sendable {
  let context: MountContext
  let buffers = BufferPool()
  let health = CacheHealth()
  let spills = SpillMemory()
  let openVersions = OpenVersions()
  /// A leaf.
  let readAheadHistory = Mutex(ReadAheadHistory())
  let connectionCounts: ConnectionCounts
  /// A leaf.
  let hedges = Mutex(HedgeBudget())
  let silentServers = SilentServers()
  let firstBytes = FirstBytes()
  let cachePreloads: CachePreloads
  let pages: PageInvalidator
  let evictor: CacheEvictor
  let clock: DeadlineClock
  /// Wakes the prefetcher, because a file may be complete.
  let wakePrefetcher: @Sendable () -> Void
  private let versionIDs = VersionCounter()
  private let checkpoints: CheckpointScheduler

  init(
    context: MountContext, clock: DeadlineClock, checkpoints: CheckpointScheduler,
    evictor: CacheEvictor, wakePrefetcher: @escaping @Sendable () -> Void
  ) {
    self.context = context
    self.clock = clock
    self.checkpoints = checkpoints
    self.evictor = evictor
    self.wakePrefetcher = wakePrefetcher
    cachePreloads = CachePreloads(descriptorLimit: context.cache.descriptorLimit)
    connectionCounts = ConnectionCounts(context: context)
    pages = PageInvalidator(context: context)
  }

  // MARK: Context

  var client: ExchangeClient { context.client }
  var cache: CacheDirectory { context.cache }
  var settings: FileSettings { context.settings }
  var logger: Logger { context.logger }
  var retryPolicy: RetryPolicy { context.retryPolicy }
  var storage: StorageQueue { context.storage }
  var cacheOpens: CacheOpenQueue { context.cacheOpens }
  var outages: HostOutages { context.outages }

  /// The level of the log for the failure of a file or listing.
  var failureLevel: Logger.Level {
    context.isChecking.load(ordering: .relaxed) ? .info : .warning
  }

  /// See ``MountContext/reply(byteCount:needsDisk:_:)``.
  func reply(byteCount: Int64, needsDisk: Bool, _ work: @escaping @Sendable () -> Void) {
    context.reply(byteCount: byteCount, needsDisk: needsDisk, work)
  }

  /// Runs `work`, which hashes all cached bytes of a file, after earlier such work.
  func hashFile(_ work: @escaping @Sendable () -> Void) {
    context.verificationQueue.async(execute: work)
  }

  /// Runs `work`, which hashes a piece, on a thread that may wait for the disk.
  func hashPiece(_ work: @escaping @Sendable () -> Void) {
    context.hashingQueue.async(execute: work)
  }

  /// Runs `work` soon, after earlier work, on a thread that may wait for the disk.
  func background(_ work: @escaping @Sendable () -> Void) { context.background(work) }

  // MARK: Files and versions

  /// A number that no other version of any file of this mount has.
  func nextVersionID() -> VersionID { versionIDs.next() }

  /// The connections per file, for read-ahead; nil if each file finds its best number.
  var connections: Int? { connectionCounts.perFile }

  /// How many connections have paid at the host of `url` before, if each file finds its best
  /// number.
  func learnedConnections(for url: RemoteURL) -> Int? { connectionCounts.learned(for: url) }

  /// Records that `count` connections have paid at the host of `url`.
  func recordConnections(_ count: Int, for url: RemoteURL) {
    connectionCounts.note(count, for: url)
  }

  /// The limit that the list, or else the settings, give a file, in bytes per second; nil for no
  /// limit.
  func listedRateLimit(of source: FileSource) -> Int64? {
    let limit = source.details?.rateLimit ?? settings.fileRateLimit ?? 0
    return limit > 0 ? limit : nil
  }

  /// Records that bytes of `version` which readers have seen are wrong.
  func recordDropped(_ version: VersionID) { pages.invalidate(version) }

  /// Starts a checkpoint of `version` if uncommitted data is old enough.
  func checkpointIfDue(_ version: some Checkpointed, now: ContinuousClock.Instant) {
    checkpoints.checkpointIfDue(version, now: now)
  }

  // MARK: Cache size

  /// Records that the entry of `key` holds the bytes of `version`: eviction asks its file first.
  func recordEntry(_ key: CacheKey, of version: any EntryHolder) {
    evictor.note(key, of: version.entryOwner, version)
  }

  /// Does the same as ``recordEntry(_:of:)`` before the entry is opened or created, once no
  /// eviction is removing it.
  ///
  /// Call it on a thread that may wait for the disk.
  func recordUpcomingEntry(_ key: CacheKey, of version: any EntryHolder) {
    evictor.recordNew(key, of: version.entryOwner, version)
  }

  /// Marks the entry of `key` as used, for the order of eviction.
  func recordUse(of key: CacheKey) { evictor.recordUse(of: key) }

  /// Whether the disk under the cache has less free space than it must keep.
  var isDiskShort: Bool { evictor.isDiskShort }

  /// Records bytes that were stored in the cache; call it on a thread that may wait for the
  /// disk.
  func recordStored(_ byteCount: Int64) { evictor.recordStored(byteCount) }

  /// Evicts unused entries, because the disk is full.
  ///
  /// - Returns: whether anything could be evicted.
  func makeRoom() -> Bool { evictor.makeRoom() }

  /// Closes the entries of files without readers, to free their descriptors.
  ///
  /// - Returns: whether there were any.
  func releaseIdleEntries() -> Bool { clock.releaseIdleEntries() }
}
