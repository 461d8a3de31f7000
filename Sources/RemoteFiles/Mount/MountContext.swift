internal import Dispatch
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// The constant parts of a running mount: client, cache, settings, log, and queues for slow work.
final class MountContext: Sendable {
  let client: ExchangeClient
  let cache: CacheDirectory
  let settings: FileSettings
  let logger: Logger
  /// The most bytes that the cache may use on disk; nil for no limit.
  let cacheByteLimit: Int64?
  let retryPolicy = RetryPolicy()
  let storage: StorageQueue
  /// Opens cache entries for lookups and opens.
  let cacheOpens: CacheOpenQueue
  let outages: HostOutages
  /// Whether the sources are being checked before the mount: the check tells of failures itself.
  let isChecking = Atomic(false)

  /// Answers reads of many bytes: moving them into the kernel must not delay the next store.
  let replyQueue = DispatchQueue(label: "httpfs.replies")
  /// Answers reads that need the disk of the cache, and may wait for it: those of many bytes, and
  /// all while the disk hangs.
  let cachedReplyQueue = DispatchQueue(label: "httpfs.replies.cached")
  /// Runs work that may block on the disk: fdatasync and eviction.
  let diskQueue = DispatchQueue(label: "httpfs.disk")
  /// Runs the user's requests, and other work that takes as long as the disk needs; nothing waits
  /// for either.
  let backgroundQueue = DispatchQueue(label: "httpfs.background")
  /// Makes the kernel forget wrong bytes.
  let droppingQueue = DispatchQueue(label: "httpfs.dropping")
  /// Reads all cached bytes of files, perhaps for minutes.
  let verificationQueue = DispatchQueue(label: "httpfs.verification")
  /// Hashes pieces that have arrived and that reads wait for.
  let hashingQueue = DispatchQueue(label: "httpfs.hashing")
  /// Parses listings and answers their waiters, one at a time to limit the memory in use.
  let listingQueue = DispatchQueue(label: "httpfs.listings")

  init(
    client: ExchangeClient, cache: CacheDirectory, settings: FileSettings, cacheByteLimit: Int64?,
    logger: Logger
  ) {
    self.client = client
    self.cache = cache
    self.settings = settings
    self.cacheByteLimit = cacheByteLimit
    self.logger = logger
    storage = StorageQueue(client: client)
    cacheOpens = CacheOpenQueue(timeout: settings.cacheTimeout)
    outages = HostOutages(limit: settings.outageTimeout, firstLimit: settings.firstAnswerTimeout)
  }

  /// Runs `work`, which answers reads with `byteCount` bytes.
  ///
  /// A few bytes are answered on the calling thread, unless `work` needs the disk of the cache
  /// while that hangs.
  func reply(byteCount: Int64, needsDisk: Bool, _ work: @escaping @Sendable () -> Void) {
    if byteCount < FileSettings.minimumQueuedReply, !needsDisk || !storage.isStuck { return work() }
    (needsDisk ? cachedReplyQueue : replyQueue).async(execute: work)
  }

  /// Runs `work` soon, after earlier work, on a thread that may wait for the disk.
  func background(_ work: @escaping @Sendable () -> Void) { backgroundQueue.async(execute: work) }
}
