/// How many requests were sent in the last minute, to the second.
struct RequestMeter: Sendable {
  private static let secondCount = 60

  private struct Slot {
    let second: Int
    var count: Int
  }

  /// The seconds of the last minute in which requests were sent, in order.
  ///
  /// Most files of a long list have one or none.
  private var slots: [Slot] = []

  mutating func note(_ count: Int, second now: Int) {
    guard count > 0 else { return }
    // A clock that lags behind counts towards the last second.
    let second = max(now, slots.last?.second ?? now)
    slots.removeAll { $0.second <= second - Self.secondCount }
    if slots.last?.second == second {
      slots[slots.count - 1].count += count
    } else {
      slots.append(Slot(second: second, count: count))
    }
  }

  /// The number of requests in the minute that ends with the second `now`.
  func count(second now: Int) -> Int {
    slots.reduce(0) { $1.second > now - Self.secondCount ? $0 + $1.count : $0 }
  }
}
