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
    let began: ContinuousClock.Instant
    var isOverdue: Bool
  }

  private struct State {
    /// Serial queues: a concurrent queue adds no thread while its own are blocked.
    var idle: [DispatchQueue] = []
    /// By number; opens begin in the order of their numbers, and ``nextID`` is the first.
    var waiting: [Int: Work] = [:]
    var nextID = 1
    var running: [Int: Open] = [:]
    /// When each open is due, and the callback that runs if it takes longer.
    var awaited: [Int: (due: ContinuousClock.Instant, late: Work)] = [:]
    var lastID = 0
    var isTimerSet = false
    /// Whether the timer that counts the quick opens again is set.
    var isWideningSet = false

    /// Whether the disk seems to hang.
    var isStuck: Bool {
      running.count >= CacheOpenQueue.stuckCount && running.values.allSatisfy(\.isOverdue)
    }

    /// The next open, if it may begin now, and an idle queue for it.
    mutating func next(now: ContinuousClock.Instant) -> Job? {
      guard let work = waiting[nextID], running.count < CacheOpenQueue.maximumWidth, !isStuck,
        running.values.count(where: { now - $0.began < CacheOpenQueue.quick })
          < CacheOpenQueue.width
      else { return nil }
      let id = nextID
      waiting[id] = nil
      nextID += 1
      running[id] = Open(began: now, isOverdue: awaited[id] == nil)
      return (idle.popLast() ?? DispatchQueue(label: "httpfs.cache-opens"), id, work)
    }

    /// Whether the caller must set the timer, because opens wait for running ones.
    mutating func mustSetWidening() -> Bool {
      guard !isWideningSet, waiting[nextID] != nil, running.count < CacheOpenQueue.maximumWidth,
        !isStuck
      else { return false }
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
      if !isStuck { state.awaited[state.lastID] = (now + timeout, late) }
      state.waiting[state.lastID] = work
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
          state.running[current.id] = nil
          state.awaited[current.id] = nil
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
      for (id, item) in state.awaited where item.due <= now {
        state.awaited[id] = nil
        state.running[id]?.isOverdue = true
        late.append(item.late)
      }
      let next = state.awaited.values.lazy.map(\.due).min()
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
