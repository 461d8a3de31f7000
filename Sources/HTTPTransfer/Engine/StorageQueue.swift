internal import Dispatch
internal import Synchronization

/// Runs what writes to cache files or to the file of a download: one thing at a time, in order, on a
/// thread that may wait for the disk.
///
/// The network thread hands over what it has gathered and returns to its sockets. If too much waits
/// for the disk, exchanges pause. A mount also looks whether the disk stands still, which shows in
/// the head of the queue. If so, what readers may wait for is done on another thread without the
/// disk, in the same order, until the head moves again.
package final class StorageQueue: Sendable {
  /// How many buffers may wait to be stored: enough for the disk to have work while one is filled, and
  /// little memory.
  private static let bufferLimit = 8

  /// How long the head of the queue may take before the disk is taken to stand still.
  private static let patience = Duration.seconds(1)

  /// What can be done with the disk or without it, by whoever claims it first.
  private final class Job: Sendable {
    /// With the disk; returns what is done about it where nobody has done it without meanwhile, which
    /// says whether that was all.
    let work: @Sendable () -> StoreOutcome
    let workWithoutDisk: @Sendable () -> Void
    let isBuffer: Bool
    private let isClaimed = Atomic<Bool>(false)

    init(
      isBuffer: Bool, work: @escaping @Sendable () -> StoreOutcome,
      workWithoutDisk: @escaping @Sendable () -> Void
    ) {
      self.isBuffer = isBuffer
      self.work = work
      self.workWithoutDisk = workWithoutDisk
    }

    var isTaken: Bool { isClaimed.load(ordering: .acquiring) }

    func claim() -> Bool {
      isClaimed.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing)
        .exchanged
    }
  }

  /// What follows from work that has waited for the disk.
  package typealias Outcome = @Sendable () -> Void

  /// As ``Outcome``; returns whether the disk has taken all.
  package typealias StoreOutcome = @Sendable () -> Bool

  private let queue = DispatchQueue(label: "httpfs.storage")
  private let memoryQueue = DispatchQueue(label: "httpfs.memory")
  private let client: HTTPClient

  private struct State {
    var bufferCount = 0
    /// What resumes those that have paused until there is room.
    var paused: [@Sendable () -> Void] = []
    var fullSince: ContinuousClock.Instant?
    var fullTime = Duration.zero
    /// Since when the head of the queue has been at work.
    var headSince: ContinuousClock.Instant?
    /// Whether the head has taken too long, and has not ended yet.
    var isStuck = false
    /// What can be done without the disk and has not ended, in its order.
    var jobs: [Job] = []
    /// How much of that is being done so.
    var diversionCount = 0
  }

  private let state = Mutex(State())

  package init(client: HTTPClient) { self.client = client }

  /// Runs `work`, which needs the disk, after all that was handed over before.
  package func perform(_ work: @escaping @Sendable () -> Void) {
    queue.async { [self] in run(work) }
  }

  /// Runs `work`, which stores what a buffer holds, after all that was handed over before, and then what it
  /// returns; or `withoutDisk` instead, where the disk stands still.
  ///
  /// Where what it returns says that the disk has not taken all, `withoutDisk` is run after it.
  ///
  /// `work` does nothing but write to the disk, for it may go on when `withoutDisk` has been run: what it
  /// writes then counts for nothing, and lies where nothing was present. What comes after it on this queue
  /// is written over it.
  package func store(
    _ work: @escaping @Sendable () -> StoreOutcome,
    withoutDisk: @escaping @Sendable () -> Void
  ) {
    add(Job(isBuffer: true, work: work, workWithoutDisk: withoutDisk))
  }

  /// Runs `work`, which stores what a buffer holds, after all that was handed over before, however
  /// long the disk takes.
  package func store(_ work: @escaping @Sendable () -> Void) {
    store(
      {
        work()
        return { true }
      }, withoutDisk: {})
  }

  /// Runs `work`, which records what was stored, after all that was handed over before, and then what it
  /// returns; or `withoutDisk` instead, where the disk stands still.
  package func record(
    _ work: @escaping @Sendable () -> Outcome, withoutDisk: @escaping @Sendable () -> Void
  ) {
    add(
      Job(
        isBuffer: false,
        work: {
          let outcome = work()
          return {
            outcome()
            return true
          }
        }, workWithoutDisk: withoutDisk))
  }

  /// Runs `work`, which needs no disk, after all that was handed over before.
  package func follow(_ work: @escaping @Sendable () -> Void) {
    record({ work }, withoutDisk: work)
  }

  private func add(_ job: Job) {
    let isStuck = state.withLock { state in
      if job.isBuffer { state.bufferCount += 1 }
      if state.isStuck, job.claim() {
        state.diversionCount += 1
        return true
      }
      state.jobs.append(job)
      return false
    }
    if isStuck { return divert(job) }
    queue.async { [self] in
      // What went past the disk and came before is in memory in a moment.
      if state.withLock({ $0.diversionCount > 0 }) { memoryQueue.sync {} }
      guard !job.isTaken else { return }
      var outcome: StoreOutcome?
      run { outcome = job.work() }
      // A late answer says nothing any more.
      guard let outcome, job.claim() else { return }
      // Reads are answered, which may wait for the disk, too. One thread alone writes to memory.
      run { if !outcome() { memoryQueue.sync { job.workWithoutDisk() } } }
      ended(job)
    }
  }

  private func run(_ work: () -> Void) {
    state.withLock { $0.headSince = .now }
    work()
    state.withLock {
      $0.headSince = nil
      $0.isStuck = false
    }
  }

  /// Whether the disk stands still: what arrives goes to memory.
  package var isStuck: Bool { state.withLock { $0.isStuck } }

  /// Looks whether the disk stands still: then what waits for it is done without.
  package func divertIfStuck(now: ContinuousClock.Instant) {
    let jobs = state.withLock { state -> [Job] in
      guard !state.isStuck, let since = state.headSince, now - since > Self.patience else {
        return []
      }
      state.isStuck = true
      let jobs = state.jobs.filter { $0.claim() }
      state.diversionCount += jobs.count
      return jobs
    }
    for job in jobs { divert(job) }
  }

  private func divert(_ job: Job) {
    memoryQueue.async { [self] in
      job.workWithoutDisk()
      state.withLock { $0.diversionCount -= 1 }
      ended(job)
    }
  }

  private func ended(_ job: Job) {
    let resumed = state.withLock { state -> [@Sendable () -> Void] in
      state.jobs.removeAll { $0 === job }
      guard job.isBuffer else { return [] }
      state.bufferCount -= 1
      guard let since = state.fullSince, state.bufferCount <= Self.bufferLimit / 2 else {
        return []
      }
      state.fullTime += ContinuousClock.now - since
      state.fullSince = nil
      defer { state.paused = [] }
      return state.paused
    }
    for resume in resumed { resume() }
  }

  /// Says whether `transfer` may hand over more; if not, it is to pause, and goes on when there is
  /// room.
  ///
  /// - Parameter transfer: the exchange.
  /// - Returns: whether there is room.
  package func hasRoom(for transfer: ExchangeID) -> Bool {
    hasRoom { [client] in client.unpause(transfer) }
  }

  /// Says whether more may be handed over; if not, it calls `resume`, on any thread, when there is
  /// room.
  ///
  /// - Parameters:
  ///   - bufferLimit: how many buffers may wait; nil for as many as may ever wait.
  ///   - resume: continues what pauses.
  /// - Returns: whether there is room.
  func hasRoom(bufferLimit: Int? = nil, orElse resume: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      // Once it is full nobody is let in before those who have paused.
      guard state.fullSince != nil || state.bufferCount >= bufferLimit ?? Self.bufferLimit else {
        return true
      }
      state.fullSince = state.fullSince ?? .now
      state.paused.append(resume)
      return false
    }
  }

  /// For how long exchanges have been paused so far, in seconds.
  package var fullSeconds: Double {
    state.withLock { state in
      let current = state.fullSince.map { ContinuousClock.now - $0 } ?? .zero
      return (state.fullTime + current) / .seconds(1)
    }
  }

  /// Runs `work` after all that was handed over before, and returns then; for the end of a mount.
  package func finish(_ work: () -> Void = {}) {
    queue.sync(execute: work)
    memoryQueue.sync {}
  }
}
