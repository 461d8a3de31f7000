internal import Dispatch
public import ExtentRecord
public import HTTPTransfer
internal import HTTPTransferCore
public import Logging
public import MountStatus
public import RangeCache
internal import Synchronization

/// What the files of one mount share: the client, the cache, the settings and the watch over
/// deadlines.
public final class FileEnvironment: Sendable {
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
  let listings = ListingRegistry()
  let listingBudget = ListingBudget()
  let keyOwners = CacheKeyOwners()
  let silentServers = SilentServers()
  let firstBytes = FirstBytes()
  let looksAhead: LooksAhead
  let pages: PageInvalidator
  private let versionIDs = VersionCounter()
  let evictor: CacheEvictor
  let checkpoints: CheckpointScheduler
  let clock: DeadlineClock
  let prefetcher: Prefetcher

  public init(
    client: HTTPClient, cache: CacheDirectory, settings: FileSettings, cacheByteLimit: Int64?,
    logger: Logger
  ) {
    context = MountContext(
      client: client, cache: cache, settings: settings, cacheByteLimit: cacheByteLimit,
      logger: logger)
    looksAhead = LooksAhead(descriptorLimit: cache.descriptorLimit)
    connectionCounts = ConnectionCounts(context: context)
    pages = PageInvalidator(context: context)
    let evictor = CacheEvictor(context: context)
    self.evictor = evictor
    // The cache grows by what is stored.
    checkpoints = CheckpointScheduler(context: context) { evictor.enforceLimit() }
    clock = DeadlineClock(context: context, checkpoints: checkpoints)
    prefetcher = Prefetcher(context: context, clock: clock)
  }

  // MARK: For the file system

  /// The keys of the cache entries that are never evicted.
  public var pinnedKeys: Set<CacheKey> { cache.pinnedKeys }

  /// Whether the certificates of servers are verified.
  public var verifiesServers: Bool { client.configuration.verifiesServers }

  /// Runs `work` once the network thread has shown that it is alive: at once if there is no exchange
  /// that needs it.
  public func afterNetworkTurn(_ work: @escaping @Sendable () -> Void) {
    guard client.activeExchangeCount > 0 else { return work() }
    client.perform(work)
  }

  // MARK: The context

  var client: HTTPClient { context.client }
  var cache: CacheDirectory { context.cache }
  public var settings: FileSettings { context.settings }
  public var logger: Logger { context.logger }
  var retryPolicy: RetryPolicy { context.retryPolicy }
  var storage: StorageQueue { context.storage }
  var looks: CacheLooks { context.looks }

  /// The connections per file, for read-ahead; nil where each file finds its best number.
  public var connections: Int? { connectionCounts.perFile }

  /// Sets the connections per file; ``RemoteFile/followSettings()`` has a file take it up.
  public func setConnections(_ count: Int?) { connectionCounts.set(count) }

  /// How many connections have paid at the host of `url` before, where each file finds its best number.
  func learnedConnections(for url: RemoteURL) -> Int? { connectionCounts.learned(for: url) }

  /// `count` connections have paid at the host of `url`.
  func noteConnections(_ count: Int, for url: RemoteURL) { connectionCounts.note(count, for: url) }

  /// Runs `work`, which gives reads `byteCount` bytes: few of them here and now, unless it needs the disk of the
  /// cache while that stands still.
  func reply(byteCount: Int64, needsDisk: Bool, _ work: @escaping @Sendable () -> Void) {
    context.reply(byteCount: byteCount, needsDisk: needsDisk, work)
  }

  /// Runs `work`, which hashes all that is cached of a file, after what was asked for before.
  func hashWhole(_ work: @escaping @Sendable () -> Void) {
    context.verificationQueue.async(execute: work)
  }

  /// Sets what is done when bytes that readers have seen are known to be wrong: the kernel must
  /// forget them.
  public func onContentDropped(_ action: @escaping @Sendable (VersionID) -> Void) {
    pages.set(action)
  }

  /// Bytes of `version` that readers have seen are wrong.
  func noteDropped(_ version: VersionID) { pages.invalidate(version) }

  /// Sets how many body bytes a second may come in all; nil for as many as will.
  public func setRateLimit(_ bytesPerSecond: Int64?) { client.setRateLimit(bytesPerSecond) }

  /// How many may come in all; nil for as many as will.
  public var rateLimit: Int64? { client.rateLimit }

  /// Sets how many body bytes a second of each of `files` may come; nil for as many as will.
  public func setRateLimit(_ bytesPerSecond: Int64?, of files: [RemoteFile]) {
    client.setRateLimit(bytesPerSecond, of: files.map(\.rateLimit))
  }

  /// The limit that the list, or else the settings, give a file, in bytes per second; nil for none.
  public func listedRateLimit(of source: FileSource) -> Int64? {
    let limit = source.details?.rateLimit ?? settings.fileRateLimit ?? 0
    return limit > 0 ? limit : nil
  }

  /// Gives a file the limit that its list says now.
  func setListedRateLimit(of file: RemoteFile) {
    setRateLimit(listedRateLimit(of: file.source), of: [file])
  }

  /// Runs `work` soon, after what was asked for before, on a thread that may wait for the disk.
  public func background(_ work: @escaping @Sendable () -> Void) {
    context.background(work)
  }

  /// Runs `work`, which hashes a piece, on a thread that may wait for the disk.
  func hashPiece(_ work: @escaping @Sendable () -> Void) {
    context.hashingQueue.async(execute: work)
  }

  // MARK: Prefetching

  /// Fetches whole files for nobody in particular, when their turns come.
  public func prefetch(_ files: [RemoteFile]) { prefetcher.start(files) }

  /// Takes ``prefetch(_:)`` back; what has been fetched stays.
  public func cancelPrefetch(of files: [RemoteFile]) { prefetcher.remove(files) }

  /// Compares all that is cached of files with the recorded hashes, in the background.
  public func verify(_ files: [RemoteFile]) {
    for file in files { file.verifyCached() }
  }

  /// A number that no other version of any file of this mount has.
  func nextVersionID() -> VersionID { versionIDs.next() }

  /// The files that a list names keep the cache entries of their URLs; called before the mount shows
  /// them.
  public func reserveCacheKeys(for sources: [FileSource]) { keyOwners.reserve(for: sources) }

  /// The file for `source` of the list: the one that an earlier list named, if it is still in use
  /// and `mayContinue` says that nothing else shows it; otherwise a new one.
  public func file(
    of source: FileSource, key: CacheKey, mayContinue: (RemoteFile) -> Bool
  ) -> RemoteFile {
    keyOwners.file(of: source, key: key, in: self, mayContinue: mayContinue)
  }

  // MARK: Deadlines

  /// Looks after `version` until nothing waits in it and all of it is committed.
  func watch(_ version: RemoteVersion) { clock.watch(version) }

  /// Fails every read that waits, also of files that the list no longer has.
  public func abandonReads() {
    prefetcher.end()
    clock.abandonReads()
  }

  /// Ends what runs, answers what can be answered, and commits and stamps what is stored; call it
  /// once, when the kernel asks for nothing any more.
  ///
  /// Threads may still be at work then, for which the process must not wait: `_exit(2)`.
  public func end() {
    let evictor = evictor
    MountEnd(
      context: context, clock: clock, firstBytes: firstBytes, connectionCounts: connectionCounts,
      markUsed: { evictor.markUsed() }
    ).run()
  }

  // MARK: Durability

  /// How the cache is, for `.status`.
  public var cacheStatus: CacheStatus {
    let report = health.report
    return CacheStatus(error: report.error, failures: report.failureCount)
  }

  /// Starts a checkpoint of `version` when old enough data is uncommitted.
  func checkpointIfDue(_ version: RemoteVersion, now: ContinuousClock.Instant) {
    checkpoints.checkpointIfDue(version.checkpoints, now: now)
  }

  // MARK: The cache's size

  /// Remembers that the entry of `key` holds the bytes of `version`: eviction asks its file first.
  func noteEntry(_ key: CacheKey, of version: RemoteVersion) {
    evictor.note(key, of: version.file, version)
  }

  /// As ``noteEntry(_:of:)``, before the entry is opened or created: once no eviction removes what
  /// lies there.
  ///
  /// On a thread that may wait for the disk.
  func noteUpcomingEntry(_ key: CacheKey, of version: RemoteVersion) {
    evictor.noteNew(key, of: version.file, version)
  }

  /// Marks the entry of `key` as used, for the order of eviction.
  func noteUse(of key: CacheKey) { evictor.noteUse(of: key) }

  /// Whether less is free on the disk under the cache than must stay free.
  var isDiskShort: Bool { evictor.isDiskShort }

  /// Bytes were put into the cache; on a thread that may wait for the disk.
  func noteStored(_ byteCount: Int64) { evictor.noteStored(byteCount) }

  /// The disk is full: evicts what nobody uses.
  ///
  /// - Returns: whether anything could be evicted.
  func makeRoom() -> Bool { evictor.makeRoom() }

  /// Makes the cache as small as it was asked to be, in the background; for the start of a mount.
  public func trimCache() { evictor.trim() }

  /// Closes the entries of files that nobody reads, for their descriptors.
  ///
  /// - Returns: whether there were any.
  func releaseIdleEntries() -> Bool { clock.releaseIdleEntries() }
}
