internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// The cached bytes of a file, to remove or to verify them.
struct CachedBytes: Sendable {
  let context: FileContext
  /// The current version, if one is known.
  let current: @Sendable () -> RemoteVersion?

  private var environment: MountEnvironment { context.environment }

  /// How long an eviction waits for requests to end and for a sync.
  private static let evictionTimeout = Duration.seconds(5)

  /// Removes them when requests in flight have ended; waits for the disk.
  func evict() {
    guard current()?.hasHandles != true else { return recordKept("it is open") }
    let deadline = ContinuousClock.now + Self.evictionTimeout
    var failure: CacheError?
    while !removeEntryIfUnused({
      do throws(CacheError) {
        try environment.cache.removeEntry(context.cacheKey)
      } catch {
        failure = error
      }
    }) {
      // In each round: a read that has just ended may have started read-ahead.
      current()?.endFetching()
      guard ContinuousClock.now < deadline else { return recordKept("it is in use") }
      usleep(20_000)
    }
    if let failure { return recordKept("\(failure)") }
    environment.logger.info("evicted from the cache", metadata: ["file": "\(context.source.path)"])
  }

  /// Removes the cache entry by calling `remove`, unless it is being read or fetched.
  ///
  /// - Returns: whether the entry was removed.
  @discardableResult
  func removeEntryIfUnused(_ remove: () -> Void) -> Bool {
    // Not under the lock: a version in use may wait for this lock, or hold it for a long time.
    if entryHolders.contains(where: \.isInUse) { return false }
    // The lock keeps the entry from being opened or created meanwhile.
    return context.entryLock.withLock { _ in
      // Before the files are removed: a later attempt to open the entry finds none.
      for version in entryHolders where !version.forgetEntryIfUnused() { return false }
      remove()
      environment.evictor.forget(context.cacheKey)
      return true
    }
  }

  /// The versions whose bytes the cache entry may hold: an older version may be open and have bytes
  /// while the current one has none yet.
  private var entryHolders: [any EntryHolder] {
    [environment.evictor.holder(of: context.cacheKey), current()].compactMap(\.self)
  }

  private func recordKept(_ reason: String) {
    context.recordFailure(FileError(.cacheFailed, "not evicted: \(reason)"), isRetried: false)
  }

  /// Compares all of them with their recorded hashes; damaged ones are absent from then on.
  ///
  /// Reads the disk until all are compared.
  func verify() {
    guard let current = current() else { return }
    do throws(CacheError) {
      guard let audit = try environment.cache.audit(context.cacheKey),
        current.content.recordable.hasSameIdentity(as: audit.version)
      else { return }
      let byteCount = CacheVerifier(owner: current).refute(audit.damaged)
      environment.logger.info(
        "verified the cached bytes",
        metadata: ["file": "\(context.source.path)", "damaged": "\(byteCount)"])
    } catch {
      context.recordFailure(FileError(error), isRetried: false)
    }
  }
}
