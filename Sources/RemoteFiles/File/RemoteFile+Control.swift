internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// What a user can ask for one file, beside reading it.
extension RemoteFile {
  // MARK: Fetching

  /// Whether nothing is fetched of it but what a read waits for.
  public func setPaused(_ isPaused: Bool) {
    wish { $0.isPaused = isPaused }
  }

  func wish(_ change: (inout FileWishes) -> Void) {
    let hasChanged = context.wishes.withLock { wishes in
      let before = wishes
      change(&wishes)
      return wishes != before
    }
    if hasChanged { current?.followWishes() }
  }

  /// Takes up a new number of connections.
  public func followSettings() { current?.followWishes() }

  // MARK: Cached bytes

  /// Whether its cached bytes are never evicted.
  public var isPinned: Bool { environment.cache.isPinned(cacheKey) }

  /// Keeps its cached bytes from eviction, or no longer: at once in this mount, soon on the disk.
  public func setPinned(_ isPinned: Bool) {
    environment.cache.setPinned(isPinned, cacheKey)
    let request = pinRequests.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    environment.background { [self] in
      // A later request decides, and writes the pin.
      guard pinRequests.load(ordering: .acquiring) == request else { return }
      do throws(CacheError) {
        try environment.cache.storePin(isPinned, of: cacheKey)
      } catch {
        // As the disk has it.
        environment.cache.setPinned(!isPinned, cacheKey)
        noteFailure(FileError(.cacheFailed, "the pin is not stored: \(error)"), isRetried: false)
      }
    }
  }

  /// Whether the whole of it is to be fetched in the background.
  public var isPrefetched: Bool { context.wishes.withLock { $0.isPrefetched } }

  /// Whether the user has asked for something that only the file itself knows.
  var hasWishes: Bool {
    context.wishes.withLock { $0.isPaused || $0.isPrefetched }
      || rateLimit.bytesPerSecond != environment.listedRateLimit(of: source)
  }

  /// Whether somebody has it open.
  public var isOpen: Bool { current?.hasHandles == true }

  /// Removes its cached bytes, once what is in flight has ended; waits for the disk.
  public func evict() { cachedBytes.evict() }

  /// Compares all its cached bytes with their recorded hashes; what is damaged is absent from then
  /// on.
  ///
  /// Reads the disk, for as long as that takes, on the queue for that.
  public func verifyCached() {
    afterLook { [self] in environment.hashWhole { [self] in cachedBytes.verify() } }
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
