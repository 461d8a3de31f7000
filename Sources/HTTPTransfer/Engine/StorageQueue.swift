internal import Dispatch
internal import Synchronization

/// Runs jobs that write to cache files or to the file of a download.
///
/// It runs one job at a time, in order, on a thread that may wait for the disk. The network thread
/// hands over the bytes that it has gathered and returns to its sockets. If too many bytes wait for
/// the disk, exchanges pause.
///
/// A mount also checks whether the disk is stalled, which shows in the head of the queue. While it
/// is, another thread does the jobs that readers may wait for, without the disk and in the same
/// order, until the head moves again.
package final class StorageQueue: Sendable {
  /// The maximum number of buffers that wait to be stored.
  ///
  /// They give the disk work while one buffer is filled, and take little memory.
  private static let bufferLimit = 8

  /// How long the head of the queue may take before the disk counts as stalled.
  private static let timeout = Duration.seconds(1)

  /// A job that can be done with or without the disk; the first thread that claims it decides.
  private final class Job: Sendable {
    /// Does the job with the disk.
    ///
    /// The result runs unless the job was done without the disk meanwhile, and returns whether the
    /// disk took everything.
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

  /// The action that follows work which has waited for the disk.
  package typealias Outcome = @Sendable () -> Void

  /// The same, but it returns whether the disk took everything.
  package typealias StoreOutcome = @Sendable () -> Bool

  private let queue = DispatchQueue(label: "httpfs.storage")
  private let memoryQueue = DispatchQueue(label: "httpfs.memory")
  private let client: ExchangeClient

  private struct State {
    var bufferCount = 0
    /// The actions that resume exchanges which pause until there is room.
    var paused: [@Sendable () -> Void] = []
    var fullSince: ContinuousClock.Instant?
    var fullTime = Duration.zero
    /// When the head of the queue began its work; nil if none is running.
    var headSince: ContinuousClock.Instant?
    /// Whether the head has taken too long and has not ended yet.
    var isStuck = false
    /// The jobs that can be done without the disk and have not ended, by their numbers.
    var jobs: [Int: Job] = [:]
    /// The number of the last job.
    var lastJob = 0
    /// The number of jobs that are being done without the disk.
    var diversionCount = 0
  }

  private let state = Mutex(State())

  package init(client: ExchangeClient) { self.client = client }

  /// Runs `work`, which needs the disk, after all earlier jobs.
  package func perform(_ work: @escaping @Sendable () -> Void) {
    queue.async { [self] in run(work) }
  }

  /// Runs `work`, which stores the bytes of a buffer, after all earlier jobs, and then its result.
  ///
  /// If the disk is stalled, it runs `withoutDisk` instead. If the result says that the disk has
  /// not taken everything, it runs `withoutDisk` afterwards.
  ///
  /// `work` only writes to the disk, because it may still be running after `withoutDisk` has run.
  /// Its bytes then do not count, and lie where no bytes were present. Later jobs of this queue
  /// overwrite them.
  package func store(
    _ work: @escaping @Sendable () -> StoreOutcome,
    withoutDisk: @escaping @Sendable () -> Void
  ) {
    add(Job(isBuffer: true, work: work, workWithoutDisk: withoutDisk))
  }

  /// Runs `work`, which stores the bytes of a buffer, after all earlier jobs, however long the disk
  /// takes.
  package func store(_ work: @escaping @Sendable () -> Void) {
    store(
      {
        work()
        return { true }
      }, withoutDisk: {})
  }

  /// Runs `work`, which records stored bytes, after all earlier jobs, and then its result.
  ///
  /// If the disk is stalled, it runs `withoutDisk` instead.
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

  /// Runs `work`, which needs no disk, after all earlier jobs.
  package func follow(_ work: @escaping @Sendable () -> Void) {
    record({ work }, withoutDisk: work)
  }

  private func add(_ job: Job) {
    let (number, isStuck) = state.withLock { state in
      if job.isBuffer { state.bufferCount += 1 }
      state.lastJob += 1
      if state.isStuck, job.claim() {
        state.diversionCount += 1
        return (state.lastJob, true)
      }
      state.jobs[state.lastJob] = job
      return (state.lastJob, false)
    }
    if isStuck { return divert(job, number) }
    queue.async { [self] in
      // Earlier jobs that bypass the disk reach memory within a moment: wait for them.
      if state.withLock({ $0.diversionCount > 0 }) { memoryQueue.sync {} }
      guard !job.isTaken else { return }
      var outcome: StoreOutcome?
      run { outcome = job.work() }
      // A late result no longer counts.
      guard let outcome, job.claim() else { return }
      // The outcome answers reads, which may wait for the disk, too. Only one thread writes to
      // memory.
      run { if !outcome() { memoryQueue.sync { job.workWithoutDisk() } } }
      ended(job, number)
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

  /// Whether the disk is stalled, so that arriving bytes go to memory.
  package var isStuck: Bool { state.withLock { $0.isStuck } }

  /// Checks whether the disk is stalled; if so, waiting jobs are done without it.
  package func divertIfStuck(now: ContinuousClock.Instant) {
    let jobs = state.withLock { state -> [(number: Int, job: Job)] in
      guard !state.isStuck, let since = state.headSince, now - since > Self.timeout else {
        return []
      }
      state.isStuck = true
      let jobs = state.jobs.filter { $0.value.claim() }.sorted { $0.key < $1.key }
      state.diversionCount += jobs.count
      return jobs.map { ($0.key, $0.value) }
    }
    for (number, job) in jobs { divert(job, number) }
  }

  private func divert(_ job: Job, _ number: Int) {
    memoryQueue.async { [self] in
      job.workWithoutDisk()
      state.withLock { $0.diversionCount -= 1 }
      ended(job, number)
    }
  }

  private func ended(_ job: Job, _ number: Int) {
    let resumed = state.withLock { state -> [@Sendable () -> Void] in
      state.jobs[number] = nil
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

  /// Whether `exchange` may hand over more; if not, it must pause, and resumes when there is room.
  ///
  /// - Parameter exchange: the exchange.
  /// - Returns: whether there is room.
  package func hasRoom(for exchange: ExchangeID) -> Bool {
    hasRoom { [client] in client.unpause(exchange) }
  }

  /// Whether more may be handed over; if not, `resume` is called when there is room, on any thread.
  ///
  /// - Parameters:
  ///   - bufferLimit: the maximum number of waiting buffers; nil for the ordinary limit.
  ///   - resume: resumes the paused exchange.
  /// - Returns: whether there is room.
  func hasRoom(bufferLimit: Int? = nil, orElse resume: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      // Once the queue is full, no exchange may pass those that have paused.
      guard state.fullSince != nil || state.bufferCount >= bufferLimit ?? Self.bufferLimit else {
        return true
      }
      state.fullSince = state.fullSince ?? .now
      state.paused.append(resume)
      return false
    }
  }

  /// How long exchanges have been paused so far, in seconds.
  package var fullSeconds: Double {
    state.withLock { state in
      let current = state.fullSince.map { ContinuousClock.now - $0 } ?? .zero
      return (state.fullTime + current) / .seconds(1)
    }
  }

  /// Runs `work` after all earlier jobs and waits for it; for the end of a mount.
  package func finish(_ work: () -> Void = {}) {
    queue.sync(execute: work)
    memoryQueue.sync {}
  }
}
