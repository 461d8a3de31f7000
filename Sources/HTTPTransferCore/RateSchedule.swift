/// Whose bytes may pass when, where there is a limit for all together and others for some: a bucket for
/// each limit, and who waits, in turn.
///
/// A value without a clock of its own: `now` is seconds of a monotonic one everywhere.
package struct RateSchedule {
  private struct Waiter {
    let id: UInt64
    let limit: RateLimit?
  }

  /// A limit that is in force, with what may pass under it; the limit is kept, so that no other one can
  /// come to have its identity.
  private struct Group {
    let limit: RateLimit
    var bucket: RateBucket
  }

  private var total: RateBucket?
  private var groups: [ObjectIdentifier: Group] = [:]
  private var waiting: [Waiter] = []

  /// From how many limits on it is looked which of them need no bucket any more: where most do, not
  /// again before there are twice as many.
  private var tidyCount = leastTidyCount
  private static let leastTidyCount = 64

  package init() {}

  /// Sets the limit for all together, in bytes per second; nil for none.
  package mutating func setTotal(_ bytesPerSecond: Int64?, now: Double) {
    guard bytesPerSecond != total?.bytesPerSecond else { return }
    total = bytesPerSecond.map { RateBucket(bytesPerSecond: $0, now: now) }
  }

  /// Lets `byteCount` bytes of `id` pass if both limits let any pass now; if not, it waits for its turn.
  ///
  /// - Returns: whether they may.
  package mutating func admit(
    _ byteCount: Int, of id: UInt64, under limit: RateLimit?, now: Double
  ) -> Bool {
    guard total?.mayPass(now: now) != false, delay(of: limit, now: now) == 0 else {
      if !waiting.contains(where: { $0.id == id }) {
        waiting.append(Waiter(id: id, limit: limit))
      }
      return false
    }
    _ = total?.take(byteCount, now: now)
    if let limit { _ = groups[ObjectIdentifier(limit)]?.bucket.take(byteCount, now: now) }
    return true
  }

  /// Bytes that were admitted have not been taken.
  package mutating func giveBack(_ byteCount: Int, under limit: RateLimit?) {
    total?.giveBack(byteCount)
    if let limit { groups[ObjectIdentifier(limit)]?.bucket.giveBack(byteCount) }
  }

  /// The first of those who wait that may go on now; it waits no longer.
  ///
  /// One whose own limit holds it back keeps its turn, and keeps back nobody else.
  package mutating func next(now: Double) -> UInt64? {
    guard !waiting.isEmpty, total?.mayPass(now: now) != false else { return nil }
    for index in waiting.indices where delay(of: waiting[index].limit, now: now) == 0 {
      return waiting.remove(at: index).id
    }
    return nil
  }

  /// How many seconds it is until one of those who wait may go on; nil where none waits.
  package mutating func delay(now: Double) -> Double? {
    guard !waiting.isEmpty else { return nil }
    var least = Double.infinity
    for waiter in waiting where least > 0 {
      least = min(least, delay(of: waiter.limit, now: now))
    }
    return max(least, total?.delay(now: now) ?? 0)
  }

  /// How many seconds it is until bytes may pass under `limit`; 0 where they may now.
  private mutating func delay(of limit: RateLimit?, now: Double) -> Double {
    guard let limit else { return 0 }
    let key = ObjectIdentifier(limit)
    guard let rate = limit.bytesPerSecond else {
      groups[key] = nil
      return 0
    }
    if groups[key]?.bucket.bytesPerSecond != rate {
      if groups[key] == nil, groups.count >= tidyCount { tidy(now: now) }
      groups[key] = Group(limit: limit, bucket: RateBucket(bytesPerSecond: rate, now: now))
    }
    return groups[key]?.bucket.delay(now: now) ?? 0
  }

  /// Forgets the limits under which bytes may pass now: a new bucket lets no more pass than theirs.
  private mutating func tidy(now: Double) {
    for key in groups.keys where groups[key]?.bucket.mayPass(now: now) == true {
      groups[key] = nil
    }
    tidyCount = max(Self.leastTidyCount, 2 * groups.count)
  }
}
