internal import Dispatch
internal import Synchronization

/// Opens cache entries on its own threads, which may wait for the disk; the network thread and
/// libfuse's threads never do.
///
/// If the disk does not answer in time, a timer notifies the caller, which continues without the
/// cache, while the open itself runs on. While the disk seems to hang, new callers are notified
/// immediately.
///
/// Lock order: `state` is a leaf.
final class CacheOpenQueue: Sendable {
  typealias Work = @Sendable () -> Void
  private typealias Job = (queue: DispatchQueue, id: Int, work: Work)

  /// How many opens that are ``quick`` run at a time.
  ///
  /// More of them would only wait for each other: an open takes the lock of the mount's cache
  /// entries three times.
  static let width = 4

  /// How long an open may run before it no longer holds up others: it waits for the disk, or reads
  /// much of it.
  static let quick = Duration.milliseconds(20)

  /// How many opens run at a time, however slow they are.
  static let maximumWidth = 32

  /// The disk counts as hung when at least this many opens run and all of them are overdue.
  static let stuckCount = 8

  private struct Open {
    /// The open, until it begins.
    var work: Work?
    var began: ContinuousClock.Instant?
    /// When it is due, and the callback that runs if it takes longer; nil once that has run.
    var awaited: (due: ContinuousClock.Instant, late: Work)?

    var isOverdue: Bool { awaited == nil }

    mutating func begin(now: ContinuousClock.Instant) -> Work? {
      began = now
      return work.take()
    }
  }

  private struct State {
    /// Serial queues: a concurrent queue adds no thread while its own are blocked.
    var idle: [DispatchQueue] = []
    /// By number; opens begin in the order of their numbers.
    var opens: [Int: Open] = [:]
    /// The first that waits.
    var nextID = 1
    /// The numbers of those that run.
    var running: [Int] = []
    var lastID = 0
    var isTimerSet = false
    /// Whether the timer that counts the quick opens again is set.
    var isWideningSet = false

    /// Whether the disk seems to hang.
    var isStuck: Bool {
      running.count >= CacheOpenQueue.stuckCount
        && running.allSatisfy { opens[$0]?.isOverdue ?? true }
    }

    /// The next open, if it may begin now, and an idle queue for it.
    mutating func next(now: ContinuousClock.Instant) -> Job? {
      guard nextID <= lastID, mayRunMore,
        running.count < CacheOpenQueue.width || quickCount(now: now) < CacheOpenQueue.width
      else { return nil }
      let id = nextID
      guard let work = opens[id]?.begin(now: now) else { return nil }
      nextID += 1
      running.append(id)
      return (idle.popLast() ?? DispatchQueue(label: "httpfs.cache-opens"), id, work)
    }

    private var mayRunMore: Bool { running.count < CacheOpenQueue.maximumWidth && !isStuck }

    /// How many of those that run have not turned out to be slow.
    private func quickCount(now: ContinuousClock.Instant) -> Int {
      running.count { opens[$0]?.began.map { now - $0 < CacheOpenQueue.quick } ?? false }
    }

    /// Whether the caller must set the timer, because opens wait for running ones.
    mutating func mustSetWidening() -> Bool {
      guard !isWideningSet, nextID <= lastID, mayRunMore else { return false }
      isWideningSet = true
      return true
    }
  }

  /// How long an open may take.
  private let timeout: Duration
  private let state = Mutex(State())
  private let timer = DispatchQueue(label: "httpfs.cache-opens-timer")

  init(timeout: Duration) { self.timeout = timeout }

  /// Runs `work` when its turn comes; runs `late` if `work` has not ended in time.
  ///
  /// A late `work` still runs to its end.
  ///
  /// - Parameters:
  ///   - isRepeated: whether another caller already waits for the same open; if so, `work` is not
  ///     queued while the disk hangs.
  ///   - work: the open.
  ///   - late: notifies the caller.
  func perform(isRepeated: Bool = false, _ work: @escaping Work, late: @escaping Work) {
    let now = ContinuousClock.now
    let (next, isStuck, mustSetTimer, mustWiden) = state.withLock {
      state -> (Job?, Bool, Bool, Bool) in
      let isStuck = state.isStuck
      if isStuck, isRepeated { return (nil, true, false, false) }
      state.lastID += 1
      state.opens[state.lastID] = Open(
        work: work, awaited: isStuck ? nil : (now + timeout, late))
      let mustSetTimer = !isStuck && !state.isTimerSet
      if mustSetTimer { state.isTimerSet = true }
      return (state.next(now: now), isStuck, mustSetTimer, state.mustSetWidening())
    }
    if let next { run(next) }
    if mustSetTimer { setTimer(after: timeout) }
    if mustWiden { widenSoon() }
    if isStuck { late() }
  }

  private func run(_ job: Job) {
    job.queue.async { [self] in
      // Starts the next open without a dispatch: a walk of a directory brings thousands.
      var next: Job? = job
      while let current = next {
        current.work()
        let mustWiden: Bool
        (next, mustWiden) = state.withLock { state in
          state.opens[current.id] = nil
          state.running.removeAll { $0 == current.id }
          state.idle.append(current.queue)
          // This queue is the last of those that are idle, so the next open gets it again.
          return (state.next(now: .now), state.mustSetWidening())
        }
        if mustWiden { widenSoon() }
      }
    }
  }

  /// Starts waiting opens beside others that have turned out to be slow.
  private func widenSoon() {
    timer.asyncAfter(deadline: Self.time(in: Self.quick)) { [weak self] in
      guard let self else { return }
      let (jobs, mustWiden) = state.withLock { state -> ([Job], Bool) in
        state.isWideningSet = false
        var jobs: [Job] = []
        let now = ContinuousClock.now
        while let job = state.next(now: now) { jobs.append(job) }
        return (jobs, state.mustSetWidening())
      }
      for job in jobs { run(job) }
      if mustWiden { widenSoon() }
    }
  }

  /// Sets the one timer of all opens: an open that ends in time needs none.
  private func setTimer(after delay: Duration) {
    timer.asyncAfter(deadline: Self.time(in: delay)) { [weak self] in
      self?.tellLateOnes()
    }
  }

  private static func time(in delay: Duration) -> DispatchTime {
    .now() + .milliseconds(max(1, Int((delay / .milliseconds(1)).rounded(.up))))
  }

  private func tellLateOnes() {
    let now = ContinuousClock.now
    let (late, delay) = state.withLock { state -> ([Work], Duration?) in
      var late: [Work] = []
      for (id, open) in state.opens {
        guard let awaited = open.awaited, awaited.due <= now else { continue }
        state.opens[id]?.awaited = nil
        late.append(awaited.late)
      }
      let next = state.opens.values.lazy.compactMap { $0.awaited?.due }.min()
      state.isTimerSet = next != nil
      return (late, next.map { $0 - now })
    }
    for work in late { work() }
    if let delay { setTimer(after: delay) }
  }
}

/// An answer that two callers compete to give; the first to take it wins.
final class PendingAnswer<Value: Sendable>: Sendable {
  private let answer: Mutex<(@Sendable (Value) -> Void)?>

  init(_ answer: @escaping @Sendable (Value) -> Void) { self.answer = Mutex(answer) }

  /// Takes the answer; nil after the first call.
  func take() -> (@Sendable (Value) -> Void)? { answer.withLock { $0.take() } }
}
