/// Tracks which transfers of a queue run, wait or are paused; decides which one is next.
///
/// A value: its methods return the actions that the queue must perform after it releases its lock.
package struct QueueState<ID: Hashable & Sendable>: Sendable {
  /// The phase of a transfer, as the queue sees it.
  package enum Phase: Sendable {
    /// Waits for a slot for the first time.
    case waiting
    /// Waits for a slot to continue.
    case resuming
    case running
    /// Paused before it ran.
    case held
    /// Paused while it ran; its slot is free for others.
    case paused
    /// Asked to end.
    case ending
    case ended
  }

  /// An action on a transfer.
  package enum Action: Equatable, Sendable {
    case begin(ID)
    case proceed(ID)
    case hold(ID)
  }

  package struct Item: Sendable {
    package let id: ID
    package let host: String
    package let priority: Int
    package var phase = Phase.waiting

    /// Whether it runs before a transfer that was added earlier.
    func comesBefore(_ other: Item) -> Bool {
      if (phase == .resuming) != (other.phase == .resuming) { return phase == .resuming }
      return priority > other.priority
    }
  }

  package private(set) var items: [Item] = []
  package private(set) var isSuspended = true
  private let maximumConcurrent: Int
  private let maximumPerHost: Int

  package init(maximumConcurrent: Int, maximumPerHost: Int?) {
    self.maximumConcurrent = max(1, maximumConcurrent)
    self.maximumPerHost = max(1, maximumPerHost ?? .max)
  }

  /// Whether all added transfers have ended.
  package var isFinished: Bool { items.allSatisfy { $0.phase == .ended } }

  package mutating func add(_ id: ID, host: String, priority: Int) -> [Action] {
    items.append(Item(id: id, host: host, priority: priority))
    return next()
  }

  package mutating func start() -> [Action] {
    isSuspended = false
    return next()
  }

  /// Starts no more transfers, and holds the running ones.
  package mutating func suspend() -> [Action] {
    isSuspended = true
    var actions: [Action] = []
    for index in items.indices where items[index].phase == .running {
      items[index].phase = .resuming
      actions.append(.hold(items[index].id))
    }
    return actions
  }

  package mutating func pause(_ id: ID) -> [Action] {
    guard let index = items.firstIndex(where: { $0.id == id }) else { return [] }
    switch items[index].phase {
    case .waiting: items[index].phase = .held
    case .resuming: items[index].phase = .paused
    case .running:
      items[index].phase = .paused
      return [.hold(id)] + next()
    case .held, .paused, .ending, .ended: break
    }
    return []
  }

  package mutating func resume(_ id: ID) -> [Action] {
    guard let index = items.firstIndex(where: { $0.id == id }) else { return [] }
    switch items[index].phase {
    case .held: items[index].phase = .waiting
    case .paused: items[index].phase = .resuming
    case .waiting, .resuming, .running, .ending, .ended: break
    }
    return next()
  }

  package mutating func end(_ id: ID) -> [Action] {
    guard let index = items.firstIndex(where: { $0.id == id }) else { return [] }
    items[index].phase = .ended
    return next()
  }

  /// Marks all transfers as ending: none of them starts, even if slots become free.
  package mutating func endAll() {
    for index in items.indices where items[index].phase != .ended { items[index].phase = .ending }
  }

  /// Removes the transfers that have ended.
  package mutating func removeEnded() { items.removeAll { $0.phase == .ended } }

  /// Selects the transfers to run now: interrupted ones first, then by priority, then by order.
  private mutating func next() -> [Action] {
    guard !isSuspended else { return [] }
    var running = 0
    // Skip the counting by host without a limit for it: the method often scans a long queue.
    let isLimitedByHost = maximumPerHost < .max
    var perHost: [String: Int] = [:]
    for item in items where item.phase == .running {
      running += 1
      if isLimitedByHost { perHost[item.host, default: 0] += 1 }
    }
    guard running < maximumConcurrent else { return [] }
    var actions: [Action] = []
    while running < maximumConcurrent {
      let best = items.indices.reduce(nil as Int?) { best, index in
        let item = items[index]
        guard item.phase == .waiting || item.phase == .resuming,
          !isLimitedByHost || perHost[item.host, default: 0] < maximumPerHost
        else { return best }
        guard let best else { return index }
        return item.comesBefore(items[best]) ? index : best
      }
      guard let index = best else { break }
      let isNew = items[index].phase == .waiting
      actions.append(isNew ? .begin(items[index].id) : .proceed(items[index].id))
      items[index].phase = .running
      running += 1
      if isLimitedByHost { perHost[items[index].host, default: 0] += 1 }
    }
    return actions
  }
}
