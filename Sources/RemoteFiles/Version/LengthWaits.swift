internal import HTTPTransferCore

/// An open that waits for the length of its file.
struct LengthWait: Sendable {
  let answer: @Sendable () -> Void
  var deadline: ContinuousClock.Instant
}

/// The opens of one version that wait for its length.
struct LengthWaits: Sendable {
  private var waits: [LengthWait] = []
  /// When an open last waited in vain.
  private var missedAt: ContinuousClock.Instant?

  var isEmpty: Bool { waits.isEmpty }

  /// Whether no open has waited in vain recently.
  func mayWait(now: ContinuousClock.Instant) -> Bool {
    missedAt.map { now - $0 >= FileSettings.failureMemory } ?? true
  }

  mutating func insert(_ wait: LengthWait) { waits.append(wait) }

  mutating func postpone(by delay: Duration) {
    for index in waits.indices { waits[index].deadline += delay }
  }

  /// Removes and returns all waits.
  mutating func removeAll() -> [LengthWait] {
    defer { waits = [] }
    return waits
  }

  /// Removes and returns the waits whose deadline is `end` or earlier, because the length will not
  /// be known soon.
  ///
  /// For a moment after that, no open may wait.
  mutating func miss(
    now: ContinuousClock.Instant, until end: ContinuousClock.Instant? = nil
  ) -> [LengthWait] {
    let missed = waits.filter { wait in end.map { wait.deadline <= $0 } ?? true }
    guard !missed.isEmpty else { return [] }
    missedAt = now
    waits.removeAll { wait in end.map { wait.deadline <= $0 } ?? true }
    return missed
  }
}
