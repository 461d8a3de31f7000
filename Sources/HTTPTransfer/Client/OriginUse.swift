/// How exchanges use the slots of an origin now.
package struct OriginUse: Sendable, Equatable {
  /// How many exchanges have a slot.
  package fileprivate(set) var exchangeCount: Int

  /// When the server last sent something to one of them, to half a second; before that, when the
  /// first of them began.
  fileprivate var activeAt: ContinuousClock.Instant

  package init(exchangeCount: Int, activeAt: ContinuousClock.Instant) {
    self.exchangeCount = exchangeCount
    self.activeAt = activeAt
  }

  /// How long the server has sent nothing to any of them.
  package func silence(now: ContinuousClock.Instant) -> Duration { max(.zero, now - activeAt) }
}

/// The use of all origins that have exchanges in progress.
struct OriginUses {
  private var uses: [String: OriginUse] = [:]

  subscript(origin: String) -> OriginUse? { uses[origin] }

  mutating func began(at origin: String, now: ContinuousClock.Instant) {
    uses[origin, default: OriginUse(exchangeCount: 0, activeAt: now)].exchangeCount += 1
  }

  mutating func ended(at origin: String) {
    guard let use = uses[origin] else { return }
    if use.exchangeCount > 1 { uses[origin]?.exchangeCount -= 1 } else { uses[origin] = nil }
  }

  /// Records that these origins have sent something.
  mutating func received(from origins: Set<String>, now: ContinuousClock.Instant) {
    for origin in origins { uses[origin]?.activeAt = now }
  }
}
