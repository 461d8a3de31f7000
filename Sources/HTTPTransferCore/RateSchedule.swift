/// Decides when requests may pass bytes under a total limit and individual limits.
///
/// Holds a bucket for each limit, and the queue of waiting requests. A value without a clock of its
/// own: `now` is seconds of a monotonic clock everywhere.
package struct RateSchedule {
  private struct Waiter {
    let id: UInt64
    let limit: RateLimit?
  }

  /// An active limit and its bucket; the reference to the limit keeps its identity from reuse.
  private struct Group {
    let limit: RateLimit
    var bucket: RateBucket
  }

  private var total: RateBucket?
  private var groups: [ObjectIdentifier: Group] = [:]
  private var waiting: [Waiter] = []

  /// The number of limits from which on unneeded buckets are removed.
  ///
  /// If most are needed, the number doubles.
  private var tidyCount = minimumTidyCount
  private static let minimumTidyCount = 64

  package init() {}

  /// Sets the total limit in bytes per second; nil for none.
  package mutating func setTotal(_ bytesPerSecond: Int64?, now: Double) {
    guard bytesPerSecond != total?.bytesPerSecond else { return }
    total = bytesPerSecond.map { RateBucket(bytesPerSecond: $0, now: now) }
  }

  /// Lets `byteCount` bytes of `id` pass if both limits let bytes pass now; otherwise queues `id`.
  ///
  /// - Returns: whether they pass.
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

  /// Returns the tokens of bytes that were admitted but not taken.
  package mutating func giveBack(_ byteCount: Int, under limit: RateLimit?) {
    total?.giveBack(byteCount)
    if let limit { groups[ObjectIdentifier(limit)]?.bucket.giveBack(byteCount) }
  }

  /// Dequeues the first waiting request that may continue now.
  ///
  /// A request whose own limit delays it keeps its turn, and delays no other request.
  package mutating func next(now: Double) -> UInt64? {
    guard !waiting.isEmpty, total?.mayPass(now: now) != false else { return nil }
    for index in waiting.indices where delay(of: waiting[index].limit, now: now) == 0 {
      return waiting.remove(at: index).id
    }
    return nil
  }

  /// The number of seconds until a waiting request may continue; nil if none waits.
  package mutating func delay(now: Double) -> Double? {
    guard !waiting.isEmpty else { return nil }
    var least = Double.infinity
    for waiter in waiting where least > 0 {
      least = min(least, delay(of: waiter.limit, now: now))
    }
    return max(least, total?.delay(now: now) ?? 0)
  }

  /// The number of seconds until bytes may pass under `limit`; 0 if they may pass now.
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

  /// Drops the buckets that let bytes pass now: a new bucket lets no more bytes pass than those.
  private mutating func tidy(now: Double) {
    for key in groups.keys where groups[key]?.bucket.mayPass(now: now) == true {
      groups[key] = nil
    }
    tidyCount = max(Self.minimumTidyCount, 2 * groups.count)
  }
}
