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
      // Who comes later has the last word, and writes it.
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

  /// How long an eviction waits for requests to end and for a sync.
  private static let evictionPatience = Duration.seconds(5)

  /// Removes its cached bytes, once what is in flight has ended; waits for the disk.
  public func evict() {
    guard !isOpen else { return noteKept("it is open") }
    let deadline = ContinuousClock.now + Self.evictionPatience
    while !removeEntryIfUnused({ environment.cache.removeEntry(cacheKey) }) {
      // Again and again: one who read just now is read ahead for.
      current?.endFetching()
      guard ContinuousClock.now < deadline else { return noteKept("it is in use") }
      usleep(20_000)
    }
    environment.logger.info("evicted from the cache", metadata: ["file": "\(source.path)"])
  }

  /// Removes the cache entry by `remove`, unless somebody reads or fetches it.
  ///
  /// - Returns: whether it is gone.
  @discardableResult
  func removeEntryIfUnused(_ remove: () -> Void) -> Bool {
    // Not under the lock: a version in use may wait for this lock, or hold it for a long time.
    if entryHolders.contains(where: \.isInUse) { return false }
    // Nobody looks for, opens or creates the entry meanwhile.
    return context.loading.withLock { _ in
      // Before the files are removed: whoever opens the entry from now on finds nothing.
      for version in entryHolders where !version.forgetEntryIfUnused() { return false }
      remove()
      environment.evictor.forget(cacheKey)
      return true
    }
  }

  /// The versions whose bytes the cache entry may hold: an older version may be open and have bytes
  /// while the current one has none yet.
  private var entryHolders: [any EntryHolder] {
    [environment.evictor.holder(of: cacheKey), current].compactMap(\.self)
  }

  private func noteKept(_ reason: String) {
    noteFailure(FileError(.cacheFailed, "not evicted: \(reason)"), isRetried: false)
  }

  /// Compares all its cached bytes with their recorded hashes; what is damaged is absent from then
  /// on.
  ///
  /// Reads the disk, for as long as that takes, on the queue for that.
  public func verifyCached() {
    afterLook { [self] in environment.hashWhole { [self] in verifyKnown() } }
  }

  private func verifyKnown() {
    guard let current else { return }
    do throws(CacheError) {
      guard let audit = try environment.cache.audit(cacheKey),
        current.content.recordable.hasSameIdentity(as: audit.version)
      else { return }
      let byteCount = current.verifier.refute(audit.damaged)
      environment.logger.info(
        "verified the cached bytes",
        metadata: ["file": "\(source.path)", "damaged": "\(byteCount)"])
    } catch {
      noteFailure(FileError(error), isRetried: false)
    }
  }
}

extension RemoteFile: VersionHome {
  func perform(_ effects: VersionEffects, of version: RemoteVersion) {
    EffectRunner(owner: version).perform(effects)
  }
}
