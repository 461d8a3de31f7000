internal import HTTPTransfer
internal import Logging
internal import Synchronization

/// Fetches whole files without a reader, a few at a time, while no read waits for other bytes.
///
/// It decides which files have their turn; the planner decides which bytes of each are fetched. It
/// checks every 200 ms while it has files, and when one of them is complete or a question about one
/// has ended.
///
/// Lock order: `state` is a leaf.
final class Prefetcher: Sendable {
  /// How many files are fetched at once; the others wait for their turns.
  static let concurrency = 4

  private static let tick = Duration.milliseconds(200)

  /// How long a waiting read stops the prefetch of other files; a read that waits longer does not
  /// lack bandwidth.
  private static let deference = Duration.seconds(2)

  /// How long a file rests after a failure that may be temporary, from the first rest to the
  /// longest.
  private static let rests = Duration.seconds(1)...Duration.seconds(60)

  private struct Item {
    let file: RemoteFile
    /// Whether the server is being asked about the file.
    var isAsking = false
    /// Whether it has been asked before.
    var hasAsked = false
    /// The length of the next rest.
    var rest = rests.lowerBound
    /// How many bytes were present at the last failure.
    var presentByteCount: Int64 = 0
    var restsUntil: ContinuousClock.Instant?
  }

  private struct State {
    /// In the order of their turns.
    var items: [Item] = []
    var isTicking = false
    var hasEnded = false

    mutating func change(_ file: RemoteFile, _ body: (inout Item) -> Void) {
      guard let index = items.firstIndex(where: { $0.file === file }) else { return }
      body(&items[index])
    }
  }

  private let context: MountContext
  private let clock: DeadlineClock
  private let state = Mutex(State())
  /// Whether an extra look is scheduled.
  private let isWoken = Atomic<Bool>(false)

  init(context: MountContext, clock: DeadlineClock) {
    self.context = context
    self.clock = clock
  }

  /// Fetches whole files without a reader, when their turns come.
  func start(_ files: [RemoteFile]) {
    for file in files { file.setPolicy { $0.isPrefetched = true } }
    // After evictions that were requested before.
    context.background { [self] in add(files) }
  }

  /// Adds the files that are still to be prefetched; those that it already has keep their turns.
  private func add(_ files: [RemoteFile]) {
    let files = files.filter { $0.context.policy.withLock { $0.isPrefetched } }
    let mustStart = state.withLock { state in
      let known = Set(state.items.map { ObjectIdentifier($0.file) })
      state.items += files.filter { !known.contains(ObjectIdentifier($0)) }.map { Item(file: $0) }
      let mustStart = !state.isTicking && !state.items.isEmpty && !state.hasEnded
      if mustStart { state.isTicking = true }
      return mustStart
    }
    if mustStart { schedule(after: .zero) }
  }

  /// Removes files; bytes that have been fetched stay.
  func remove(_ files: [RemoteFile]) {
    let removed = Set(files.map { ObjectIdentifier($0) })
    state.withLock { $0.items.removeAll { removed.contains(ObjectIdentifier($0.file)) } }
    for file in files { end(file) }
  }

  /// Ends all prefetching, because the mount ends.
  func end() {
    state.withLock {
      $0.items = []
      $0.hasEnded = true
    }
  }

  private func end(_ file: RemoteFile) {
    file.setPolicy {
      $0.isPrefetched = false
      $0.mayPrefetch = false
    }
  }

  private func schedule(after delay: Duration = tick) {
    context.client.schedule(after: delay) { [weak self] in self?.run() }
  }

  /// Looks soon, because another file may have its turn.
  func wake() {
    guard !isWoken.exchange(true, ordering: .acquiringAndReleasing) else { return }
    context.client.perform { [weak self] in self?.look() }
  }

  private func run() {
    look()
    let goesOn = state.withLock { state in
      state.isTicking = !state.items.isEmpty && !state.hasEnded
      return state.isTicking
    }
    if goesOn { schedule() }
  }

  /// Looks once at the files whose turn it is; runs on the network thread.
  private func look() {
    isWoken.store(false, ordering: .releasing)
    let now = ContinuousClock.now
    let items = state.withLock { $0.items }
    let waiting = clock.versionsWithReads(since: now - Self.deference)
    var turnCount = 0
    for item in items {
      let policy = item.file.context.policy.withLock { $0 }
      guard turnCount < Self.concurrency, !policy.isPaused else {
        // A file before it may be active again.
        if policy.mayPrefetch { item.file.setPolicy { $0.mayPrefetch = false } }
        continue
      }
      if let until = item.restsUntil, now < until { continue }
      if item.isAsking || advance(item, waiting: waiting) { turnCount += 1 }
    }
  }

  /// Advances the prefetch of a file whose turn it is.
  ///
  /// - Returns: whether it still has its turn.
  private func advance(_ item: Item, waiting: Set<VersionID>) -> Bool {
    let file = item.file
    guard file.isKnown, let version = file.current else {
      if item.hasAsked, file.isDoubted {
        // A server that contradicts itself each time is not asked again immediately.
        state.withLock { $0.change(file) { $0.hasAsked = false } }
        note(FileError.hasChanged, of: file)
        return false
      }
      ask(about: file)
      return true
    }
    if context.storage.isStuck {
      // The file waits for the disk: bytes that arrived now would go to memory, and be fetched
      // again.
      file.setPolicy { $0.mayPrefetch = false }
      return true
    }
    // This comes first: bytes that only memory would hold are not prefetched.
    if version.isKeptFromCache() {
      file.recordFailure(
        FileError(.cacheFailed, "not prefetched: the cache does not take it"), isRetried: false)
      remove([file])
      return false
    }
    if version.isCompleteInCache {
      context.logger.info("prefetched", metadata: ["file": "\(file.source.path)"])
      version.environment.recordUse(of: version.file.cacheKey)
      remove([file])
      return false
    }
    if let failure = version.takePrefetchFailure() {
      note(failure, of: file)
      return false
    }
    let isFree = waiting.isEmpty || waiting == [version.id]
    // A new version, and one whose last request has failed, begins only when `applyPolicy()` is
    // called. `setPolicy(_:)` calls it only if the policy has changed.
    let wasFree = file.context.policy.withLock { $0.mayPrefetch }
    file.setPolicy { $0.mayPrefetch = isFree }
    if isFree, wasFree { version.applyPolicy() }
    return true
  }

  private func ask(about file: RemoteFile) {
    state.withLock {
      $0.change(file) {
        $0.isAsking = true
        $0.hasAsked = true
      }
    }
    file.resolve { [self] result in
      state.withLock { $0.change(file) { $0.isAsking = false } }
      if case .failure(let error) = result {
        state.withLock { $0.change(file) { $0.hasAsked = false } }
        note(error, of: file)
      }
      wake()
    }
  }

  /// Schedules another attempt after a failure, or removes the file; its status shows the reason.
  private func note(_ error: FileError, of file: RemoteFile) {
    switch error.code {
    case .missing, .denied, .rejected, .refused, .corrupt, .cacheFailed, .unmounted:
      return remove([file])
    case .stale, .unreachable, .disconnected, .timedOut, .invalidResponse, .unavailable,
      .unsigned, .tooManyFiles, .exhausted:
      break
    }
    file.setPolicy { $0.mayPrefetch = false }
    let present = file.current?.presentByteCount ?? 0
    state.withLock { state in
      state.change(file) { item in
        if present > item.presentByteCount { item.rest = Self.rests.lowerBound }
        item.presentByteCount = present
        item.restsUntil = .now + item.rest
        item.rest = min(item.rest * 2, Self.rests.upperBound)
      }
    }
  }
}
