/// Finds how many connections a file should use.
///
/// The controller raises the number while that pays, in larger steps while each connection brings
/// as much as before. It steps back if more connections gain too little. Now and then it tries half
/// as many.
package struct ParallelismController: Sendable {
  /// A connection this fast (bytes per second) is not throttled: the network link or this machine
  /// limits it, and a second connection would only share that limit.
  static let fastConnection = 100e6

  /// A goodput (bytes per second) that is not worth more connections: 2 Gbit/s.
  ///
  /// Near it, the cost of handling the bytes on this machine matters more than the number of
  /// connections.
  static let enoughGoodput = 250e6

  /// The least gain in goodput that justifies twice the connections.
  static let minimumGain = 1.15

  /// The fraction of a proportional gain from which on a gain counts as proportional.
  static let linearGain = 0.85

  /// The least share of an epoch that the network thread must have waited for the network.
  ///
  /// Otherwise the epoch shows nothing about the number of connections.
  static let minimumIdleShare = 0.5

  /// The least time to observe a step, in seconds.
  static let epoch = 0.12

  /// The epoch while the caller reports which requests bring bytes, until a step gains too little:
  /// most files have arrived before a careful search would pay.
  static let earlyEpoch = 0.05

  /// The longest wait for the first bytes of a step's new requests, in seconds.
  static let settlingTime = 1.0

  /// How long the best count is kept before more are tried again, in seconds: at first, and after
  /// repeated failed trials.
  static let holdTimes = 1.0...16.0

  /// How long the learned count of a host is used before it is tested, in seconds.
  static let learnedTrust = 4.0

  /// The number of connections to use.
  package private(set) var target: Int

  /// The number that has paid so far; nil before any has.
  package private(set) var proven: Int?

  private let maximum: Int
  private let isFixed: Bool
  private var epochStart: Double?
  private var epochIdle = 0.0
  private var epochByteCount: Int64 = 0
  /// The requests in flight, summed over the calls of the epoch.
  private var epochActive = (sum: 0, callCount: 0)
  /// The state before the step being tried; more connections than ``target`` if fewer are tried.
  private var previous: (target: Int, goodput: Double)?
  private var holdUntil = 0.0
  /// Whether the next trial is with fewer connections.
  private var triesFewer = false
  private var holdTime = holdTimes.lowerBound
  /// Until when the requests of the present step may take to bring a byte; nil once they have.
  private var settlesUntil: Double?
  /// Whether every step so far has gained proportionally.
  private var isLinear = true

  /// - Parameters:
  ///   - initial: the first number of connections.
  ///   - maximum: the most connections; when equal to `initial`, the count is fixed.
  package init(initial: Int, maximum: Int) {
    self.maximum = max(1, maximum)
    target = min(max(1, initial), self.maximum)
    isFixed = target == self.maximum
  }

  /// - Parameters:
  ///   - learned: the count that paid at the host before; nil if unknown.
  ///   - maximum: the most connections.
  package init(learned: Int?, maximum: Int) {
    self.maximum = max(1, maximum)
    target = min(max(1, learned ?? 1), self.maximum)
    isFixed = false
    // A count that paid once may be too high now.
    triesFewer = target > 1
  }

  /// Records progress; call it when bytes have arrived or were stored.
  ///
  /// - Parameters:
  ///   - byteCount: the bytes of this kind since the last call.
  ///   - active: the requests in flight now.
  ///   - flowing: how many of these have brought a byte. If given, a step is judged only once as
  ///     many requests as it wants bring bytes, which takes a slow connection several round trips.
  ///     Nil: judge at once.
  ///   - idle: the seconds that the network thread has waited for its sockets so far.
  ///   - isWaited: whether a reader waits for bytes; otherwise more speed is useless.
  ///   - now: seconds of a monotonic clock.
  package mutating func note(
    byteCount: Int64, active: Int, flowing: Int? = nil, idle: Double, isWaited: Bool, now: Double
  ) {
    if let until = settlesUntil {
      // If fewer are active than wanted, the end of the file is the limit.
      if (flowing ?? active) >= min(target, active) || now >= until { settlesUntil = nil }
      return beginEpoch(idle: idle, now: now)
    }
    epochByteCount += byteCount
    epochActive.sum += active
    epochActive.callCount += 1
    guard let start = epochStart else { return beginEpoch(idle: idle, now: now) }
    let elapsed = now - start
    let isEarly = flowing != nil && isLinear && !isFixed
    guard elapsed >= (isEarly ? Self.earlyEpoch : Self.epoch) else { return }
    let goodput = Double(epochByteCount) / elapsed
    let idleShare = (idle - epochIdle) / elapsed
    // Round up: a step from too small a number would seem to gain too little.
    let callCount = max(1, epochActive.callCount)
    let meanActive = (epochActive.sum + callCount - 1) / callCount
    beginEpoch(idle: idle, now: now)
    // A network thread that is busy, or waits for the disk, is at its limit.
    guard idleShare >= Self.minimumIdleShare else { return }
    // A pause of the reader shows nothing about the network.
    guard !isFixed || target < maximum, elapsed < 10 * Self.epoch, isWaited, active >= target else {
      return
    }
    if let previous, previous.target > target {
      // Requests under way continue, but their bytes do not count for the smaller number.
      guard meanActive <= target + target / 4 else { return }
      if goodput * Self.minimumGain < previous.goodput { target = previous.target }
      return endTrial(now: now)
    }
    if let previous, goodput < Self.minimumGoodput(after: previous, target) {
      target = previous.target
      return endTrial(now: now)
    }
    // A first step that is judged carefully may be a large one.
    var factor = isEarly ? 4 : 2
    if let previous {
      proven = target
      holdTime = Self.holdTimes.lowerBound
      // If each connection brought as much as before, each has a limit of its own, and many more
      // connections bring more.
      let gain = goodput / max(1, previous.goodput)
      isLinear = gain >= Self.linearGain * Double(target) / Double(previous.target)
      factor = !isLinear ? 2 : isEarly ? 8 : 4
    }
    guard now >= holdUntil else { return }
    if triesFewer, target > 1 {
      // Not at once: most files are read before the trial would pay.
      guard previous != nil || holdUntil > 0 else {
        holdUntil = now + Self.learnedTrust
        return
      }
      previous = (target, goodput)
      target /= 2
      return
    }
    guard target < maximum,
      goodput / Double(target) < Self.fastConnection, goodput < Self.enoughGoodput
    else {
      proven = target
      previous = nil
      return
    }
    // Demand may have used more connections, which contributed to the goodput.
    let used = min(max(target, meanActive), maximum)
    previous = (used, goodput)
    if isEarly {
      // As many as reach enough goodput if each connection keeps its rate.
      let enough = Self.enoughGoodput / max(1, goodput / Double(used))
      target = min(maximum, used * factor, max(used * 2, Int(min(enough.rounded(.up), 1e6))))
    } else {
      // Quadruple only if the result is not far beyond a useful goodput.
      if factor > 2, goodput * Double(factor) > Self.enoughGoodput { factor = 2 }
      target = min(maximum, used * factor)
    }
    if flowing != nil { settlesUntil = now + Self.settlingTime }
  }

  /// Ends a trial: either the previous number or the number tried is good.
  private mutating func endTrial(now: Double) {
    isLinear = false
    proven = target
    previous = nil
    hold(from: now)
    // Alternate between more and fewer after a long time without change.
    triesFewer = !triesFewer && !isFixed && holdTime == Self.holdTimes.upperBound
  }

  private mutating func beginEpoch(idle: Double, now: Double) {
    epochStart = now
    epochIdle = idle
    epochByteCount = 0
    epochActive = (0, 0)
  }

  /// The goodput that justifies the step from `previous` to `target` connections.
  private static func minimumGoodput(
    after previous: (target: Int, goodput: Double), _ target: Int
  ) -> Double {
    var (least, count) = (previous.goodput * minimumGain, previous.target * 2)
    while count < target { (least, count) = (least * minimumGain, count * 2) }
    return least
  }

  /// Halves the count: the server refuses (403, 429, 503) or drops connections.
  package mutating func stepDown(now: Double) {
    target = max(1, target / 2)
    proven = target
    previous = nil
    isLinear = false
    settlesUntil = nil
    hold(from: now)
  }

  private mutating func hold(from now: Double) {
    holdUntil = now + holdTime
    holdTime = min(holdTime * 2, Self.holdTimes.upperBound)
  }
}
