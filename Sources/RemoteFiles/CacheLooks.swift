internal import Dispatch
internal import Synchronization

/// Opens cache entries on threads of its own, which may wait for the disk: neither the network
/// thread nor libfuse's threads ever do.
///
/// If the disk does not answer in time, the caller is told and continues without the cache, while
/// the look itself continues. While every thread is overdue, new callers are told at once.
///
/// Lock order: `state` is a leaf.
final class CacheLooks: Sendable {
  typealias Work = @Sendable () -> Void
  private typealias Job = (queue: DispatchQueue, id: Int, work: Work)

  /// How many looks there are at a time.
  ///
  /// More of them only wait for each other: a look takes the lock of the mount's cache entries three
  /// times.
  static let width = 4

  private struct State {
    /// Serial queues: a concurrent queue adds no thread while its own are blocked.
    var idle: [DispatchQueue]
    /// By number, in whose order their turns come; ``nextID`` is the first of them.
    var waiting: [Int: Work] = [:]
    var nextID = 1
    /// The looks that run now, and whether each is overdue.
    var running: [Int: Bool] = [:]
    /// Whom to tell when a look takes too long, and when.
    var awaited: [Int: (due: ContinuousClock.Instant, late: Work)] = [:]
    var lastID = 0
    var isTimerSet = false

    /// Whether the disk seems to be stuck: every queue is busy, and every look overdue.
    var isStuck: Bool { idle.isEmpty && running.values.allSatisfy(\.self) }

    /// Gives the next look to a queue that has nothing to do.
    mutating func next() -> Job? {
      guard let work = waiting[nextID], let queue = idle.popLast() else { return nil }
      let id = nextID
      waiting[id] = nil
      nextID += 1
      running[id] = awaited[id] == nil
      return (queue, id, work)
    }
  }

  /// How long a look may take.
  private let patience: Duration
  private let state: Mutex<State>
  private let timer = DispatchQueue(label: "httpfs.looks-timer")

  init(patience: Duration) {
    self.patience = patience
    state = Mutex(
      State(idle: (1...Self.width).map { DispatchQueue(label: "httpfs.looks-\($0)") }))
  }

  /// Runs `work` when its turn comes, and `late` if `work` has not ended in time; `work` then still
  /// runs to its end.
  ///
  /// - Parameters:
  ///   - isRepeated: whether somebody else waits for the same: then `work` is not kept while the disk
  ///     stands still.
  ///   - work: the look.
  ///   - late: tells who has asked.
  func perform(isRepeated: Bool = false, _ work: @escaping Work, late: @escaping Work) {
    let due = ContinuousClock.now + patience
    let (next, isStuck, mustSetTimer) = state.withLock { state -> (Job?, Bool, Bool) in
      let isStuck = state.isStuck
      if isStuck, isRepeated { return (nil, true, false) }
      state.lastID += 1
      if !isStuck { state.awaited[state.lastID] = (due, late) }
      state.waiting[state.lastID] = work
      let mustSetTimer = !isStuck && !state.isTimerSet
      if mustSetTimer { state.isTimerSet = true }
      return (state.next(), isStuck, mustSetTimer)
    }
    if let next { run(next) }
    if mustSetTimer { setTimer(after: patience) }
    if isStuck { late() }
  }

  private func run(_ job: Job) {
    job.queue.async { [self] in
      // Without a hop between two looks, as a walk of a directory brings thousands.
      var next: Job? = job
      while let current = next {
        current.work()
        next = state.withLock { state in
          state.running[current.id] = nil
          state.awaited[current.id] = nil
          state.idle.append(current.queue)
          // This queue is the last of those that are idle, so the next look gets it again.
          return state.next()
        }
      }
    }
  }

  /// One timer for all: a look that ends in time costs none.
  private func setTimer(after delay: Duration) {
    let milliseconds = max(1, Int((delay / .milliseconds(1)).rounded(.up)))
    timer.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [weak self] in
      self?.tellLateOnes()
    }
  }

  private func tellLateOnes() {
    let now = ContinuousClock.now
    let (late, delay) = state.withLock { state -> ([Work], Duration?) in
      var late: [Work] = []
      for (id, item) in state.awaited where item.due <= now {
        state.awaited[id] = nil
        if state.running[id] != nil { state.running[id] = true }
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

/// An answer that either of two callers may give: whichever takes it first.
final class PendingAnswer<Value: Sendable>: Sendable {
  private let answer: Mutex<(@Sendable (Value) -> Void)?>

  init(_ answer: @escaping @Sendable (Value) -> Void) { self.answer = Mutex(answer) }

  /// The answer, the first time; nil after that.
  func take() -> (@Sendable (Value) -> Void)? { answer.withLock { $0.take() } }
}
