internal import Dispatch
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache

/// What stays the same while a mount runs: the client, the cache, the settings, the log, and the
/// queues on which work runs that may take long.
final class MountContext: Sendable {
  let client: HTTPClient
  let cache: CacheDirectory
  let settings: FileSettings
  let logger: Logger
  /// The most bytes that the cache may hold on disk; nil for no limit.
  let cacheByteLimit: Int64?
  let retryPolicy = RetryPolicy()
  let storage: StorageQueue
  /// Opens cache entries for look-ups and opens.
  let looks: CacheLooks

  /// Answers reads of many bytes: moving those into the kernel must not delay the next store.
  let replyQueue = DispatchQueue(label: "httpfs.replies")
  /// Answers reads that need the disk of the cache, and may wait for it: many bytes, and all while
  /// the disk stands still.
  let cachedReplyQueue = DispatchQueue(label: "httpfs.replies.cached")
  /// Runs what may block on the disk: fdatasync and eviction.
  let diskQueue = DispatchQueue(label: "httpfs.disk")
  /// Runs what a user has asked for and what takes as long as the disk lets it: nothing waits for it.
  let backgroundQueue = DispatchQueue(label: "httpfs.background")
  /// Has the kernel forget wrong bytes.
  let droppingQueue = DispatchQueue(label: "httpfs.dropping")
  /// Reads all that is cached of files, for minutes perhaps.
  let verificationQueue = DispatchQueue(label: "httpfs.verification")
  /// Hashes pieces that have arrived, for which reads wait.
  let hashingQueue = DispatchQueue(label: "httpfs.hashing")
  /// Reads listings and answers those who wait for them: one at a time, so that little memory is in
  /// use.
  let listingQueue = DispatchQueue(label: "httpfs.listings")

  init(
    client: HTTPClient, cache: CacheDirectory, settings: FileSettings, cacheByteLimit: Int64?,
    logger: Logger
  ) {
    self.client = client
    self.cache = cache
    self.settings = settings
    self.cacheByteLimit = cacheByteLimit
    self.logger = logger
    storage = StorageQueue(client: client)
    looks = CacheLooks(patience: settings.cachePatience)
  }

  /// Runs `work`, which gives reads `byteCount` bytes: few bytes here and now, unless it needs the
  /// disk of the cache while that stands still.
  func reply(byteCount: Int64, needsDisk: Bool, _ work: @escaping @Sendable () -> Void) {
    if byteCount < FileSettings.leastQueuedReply, !needsDisk || !storage.isStuck { return work() }
    (needsDisk ? cachedReplyQueue : replyQueue).async(execute: work)
  }

  /// Runs `work` soon, after what was asked for before, on a thread that may wait for the disk.
  func background(_ work: @escaping @Sendable () -> Void) { backgroundQueue.async(execute: work) }
}
