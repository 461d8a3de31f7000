/// How many requests were sent in the last minute, to the second.
struct RequestMeter: Sendable {
  private static let slotCount = 60

  /// The requests of each of the last seconds, by their numbers modulo ``slotCount``; empty before the first,
  /// because most files of a long list are never asked for.
  private var slots: [UInt32] = []
  /// The second that was counted last.
  private var second = 0

  mutating func note(_ count: Int, second now: Int) {
    guard count > 0 else { return }
    if slots.isEmpty {
      slots = [UInt32](repeating: 0, count: Self.slotCount)
      second = now
    }
    // A clock that is behind counts to the second that is the last one.
    for passed in 0..<min(max(0, now - second), Self.slotCount) {
      slots[(second + 1 + passed) % Self.slotCount] = 0
    }
    second = max(second, now)
    slots[second % Self.slotCount] &+= UInt32(clamping: count)
  }

  /// The requests of the last minute, until the second `now`.
  func count(second now: Int) -> Int {
    let passed = now - second
    guard !slots.isEmpty, passed < Self.slotCount else { return 0 }
    var stale = 0
    for index in 0..<max(0, passed) { stale += Int(slots[(second + 1 + index) % Self.slotCount]) }
    return slots.reduce(0) { $0 + Int($1) } - stale
  }
}
