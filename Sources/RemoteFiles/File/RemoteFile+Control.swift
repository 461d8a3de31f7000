internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// What a user can request for one file besides reading it.
extension RemoteFile {
  // MARK: Fetching

  /// Sets whether only bytes that a read waits for are fetched.
  package func setPaused(_ isPaused: Bool) {
    setPolicy { $0.isPaused = isPaused }
  }

  func setPolicy(_ change: (inout FetchPolicy) -> Void) {
    let hasChanged = context.policy.withLock { policy in
      let before = policy
      change(&policy)
      return policy != before
    }
    if hasChanged { current?.applyPolicy() }
  }

  /// Adopts a new number of connections.
  package func followSettings() { current?.applyPolicy() }

  // MARK: Cached bytes

  /// Whether its cached bytes are never evicted.
  package var isPinned: Bool { environment.cache.isPinned(cacheKey) }

  /// Sets whether the cached bytes are kept from eviction: in this mount immediately, on disk soon
  /// after.
  package func setPinned(_ isPinned: Bool) {
    environment.cache.setPinned(isPinned, cacheKey)
    let request = pinRequests.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    environment.background { [self] in
      // A later request decides, and writes the pin.
      guard pinRequests.load(ordering: .acquiring) == request else { return }
      do throws(CacheError) {
        try environment.cache.storePin(isPinned, of: cacheKey)
      } catch {
        // Back to the state on disk.
        environment.cache.setPinned(!isPinned, cacheKey)
        recordFailure(FileError(.cacheFailed, "the pin is not stored: \(error)"), isRetried: false)
      }
    }
  }

  /// Whether the whole file is to be fetched in the background.
  package var isPrefetched: Bool { context.policy.withLock { $0.isPrefetched } }

  /// Whether the user has made a request that only the file itself remembers.
  var hasWishes: Bool {
    context.policy.withLock { $0.isPaused || $0.isPrefetched }
      || rateLimit.bytesPerSecond != environment.listedRateLimit(of: source)
  }

  /// Whether any handle has it open.
  package var isOpen: Bool { current?.hasHandles == true }

  /// Removes its cached bytes when requests in flight have ended; waits for the disk.
  package func evict() { cachedBytes.evict() }

  /// Compares all its cached bytes with their recorded hashes; damaged ones are absent from then
  /// on.
  ///
  /// Reads the disk, on the queue for such work, until all are compared.
  package func verifyCached() {
    afterLook { [self] in environment.hashFile { [self] in cachedBytes.verify() } }
  }

  @discardableResult
  func removeEntryIfUnused(_ remove: () -> Void) -> Bool {
    cachedBytes.removeEntryIfUnused(remove)
  }

  private var cachedBytes: CachedBytes { CachedBytes(context: context) { [self] in current } }
}

extension RemoteFile: ProbedFile {
  func perform(_ effects: VersionEffects, of version: RemoteVersion) {
    EffectRunner(owner: version).perform(effects)
  }

  func responseEnded(of version: VersionID) {
    VersionAdopter(file: self).responseEnded(of: version)
  }

  func versionContradicted(_ version: VersionID) {
    VersionAdopter(file: self).versionContradicted(version)
  }

  func expire(now: ContinuousClock.Instant) -> Bool { prober.expire(now: now) }

  func postpone(by delay: Duration) { prober.postpone(by: delay) }
}
