internal import Synchronization

/// The events that a listener has not received yet.
///
/// Lock order: `state` is a leaf; the continuation is resumed after its release.
final class EventBuffer<Kind: Sendable>: Sendable {
  typealias Event = (number: Int, kind: Kind)
  private typealias Listener = CheckedContinuation<Event?, Never>

  private struct State {
    /// In order; the listener has received the events before `head`.
    var waiting: [Event] = []
    var head = 0
    var nextNumber = 0
    var isEnded = false
    var listener: Listener?

    mutating func take() -> Event? {
      guard head < waiting.count else { return nil }
      let event = waiting[head]
      head += 1
      if head == waiting.count {
        waiting.removeAll(keepingCapacity: true)
        head = 0
      } else if head > 256 {
        waiting.removeSubrange(..<head)
        head = 0
      }
      return event
    }
  }

  private let state = Mutex(State())
  private let sum: @Sendable (Kind, Kind) -> Kind?

  /// Creates an empty buffer; `sum` merges two neighbouring events if that loses no information.
  init(sum: @escaping @Sendable (Kind, Kind) -> Kind? = { _, _ in nil }) { self.sum = sum }

  func append(_ kind: Kind) {
    let delivery = state.withLock { state -> Delivery? in
      guard !state.isEnded else { return nil }
      // An event that the listener has not received yet can still grow; its number stays.
      if state.head < state.waiting.count, let last = state.waiting.last,
        let sum = sum(last.kind, kind)
      {
        state.waiting[state.waiting.count - 1] = (last.number, sum)
        return nil
      }
      let event: Event = (state.nextNumber, kind)
      state.nextNumber += 1
      if let listener = state.listener {
        state.listener = nil
        return Delivery(listener: listener, event: event)
      }
      state.waiting.append(event)
      return nil
    }
    if let delivery { delivery.listener.resume(returning: delivery.event) }
  }

  /// An event for a listener that already waits for it.
  private struct Delivery {
    let listener: Listener
    let event: Event
  }

  func end() {
    let listener = state.withLock { state -> Listener? in
      state.isEnded = true
      defer { state.listener = nil }
      return state.listener
    }
    listener?.resume(returning: nil)
  }

  func next() async -> Event? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready = state.withLock { state -> Event?? in
          if let event = state.take() { return .some(event) }
          if state.isEnded || Task.isCancelled { return .some(nil) }
          state.listener = continuation
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      let listener = state.withLock { state -> Listener? in
        defer { state.listener = nil }
        return state.listener
      }
      listener?.resume(returning: nil)
    }
  }
}

/// A listener as seen by its source: nil once no task listens any more.
struct WeakListener<Kind: Sendable>: Sendable {
  weak let buffer: EventBuffer<Kind>?

  init(_ buffer: EventBuffer<Kind>) { self.buffer = buffer }
}
