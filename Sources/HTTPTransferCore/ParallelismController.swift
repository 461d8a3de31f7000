/// Finds how many connections a file should use.
///
/// The controller raises the number while that pays, by more while each connection brings as much as
/// before. It steps back when more connections gain nothing. Now and then it tries half of them.
public struct ParallelismController: Sendable {
  /// A connection this fast (bytes per second) is not throttled: what limits it is the line or
  /// this machine, and a second connection would only share that.
  static let fastConnection = 100e6

  /// A goodput (bytes per second) that is not worth more connections: 2 Gbit/s, near which the cost
  /// of the bytes on this machine counts for more than the number of connections.
  static let enoughGoodput = 250e6

  /// The least gain in goodput that justifies having doubled the connections.
  static let leastGain = 1.15

  /// The part of the gain that equal connections would bring, from which on they count as equal.
  static let linearGain = 0.85

  /// How much of an epoch the network thread must have waited for the network for the epoch to say
  /// anything about the number of connections.
  static let leastIdleShare = 0.5

  /// How long a step is observed, at least, in seconds.
  static let epoch = 0.12

  /// The same where the caller says which requests bring bytes, until a step has gained too little:
  /// most files have arrived before a careful search would pay.
  static let earlyEpoch = 0.05

  /// How long a step waits at most for the new requests to bring their first byte, in seconds.
  static let settlingTime = 1.0

  /// How long a count that turned out best is kept before more are tried again, in seconds: at
  /// first, and after trying has failed again and again.
  static let holdTimes = 1.0...16.0

  /// How long what was learned of a host is used before it is put to the test, in seconds.
  static let learnedTrust = 4.0

  /// How many connections to use.
  public private(set) var target: Int

  /// The number that has paid, as far as has been seen; nil before anything has.
  public private(set) var proven: Int?

  private let maximum: Int
  private let isFixed: Bool
  private var epochStart: Double?
  private var epochIdle = 0.0
  private var epochByteCount: Int64 = 0
  /// The requests in flight, added up over the calls of the epoch.
  private var epochActive = (sum: 0, callCount: 0)
  /// What the step that is being tried began from; of more connections than ``target`` where fewer are tried.
  private var previous: (target: Int, goodput: Double)?
  private var holdUntil = 0.0
  /// Whether fewer are to be tried next.
  private var triesFewer = false
  private var holdTime = holdTimes.lowerBound
  /// Until when the requests of the present step may take to bring a byte; nil once they have.
  private var settlesUntil: Double?
  /// Whether every step so far has gained as much as equal connections would.
  private var isLinear = true

  /// - Parameters:
  ///   - initial: where to start.
  ///   - maximum: the most connections; when equal to `initial`, the count is fixed.
  public init(initial: Int, maximum: Int) {
    self.maximum = max(1, maximum)
    target = min(max(1, initial), self.maximum)
    isFixed = target == self.maximum
  }

  /// - Parameters:
  ///   - learned: what has paid at the host before; nil where nobody knows.
  ///   - maximum: the most connections.
  public init(learned: Int?, maximum: Int) {
    self.maximum = max(1, maximum)
    target = min(max(1, learned ?? 1), self.maximum)
    isFixed = false
    // What has paid once may be too much now.
    triesFewer = target > 1
  }

  /// Takes note of progress; call it when bytes have arrived, or were stored.
  ///
  /// - Parameters:
  ///   - byteCount: the bytes of this kind since the last call.
  ///   - active: the requests in flight now.
  ///   - flowing: how many of these have brought a byte. A step is then judged only once as many as
  ///     it wants do, which takes a slow connection several round trips. Nil: judge at once.
  ///   - idle: seconds that the network thread has waited for its sockets so far.
  ///   - isWaited: whether a reader waits for bytes; nobody needs more speed otherwise.
  ///   - now: seconds of a monotonic clock.
  public mutating func note(
    byteCount: Int64, active: Int, flowing: Int? = nil, idle: Double, isWaited: Bool, now: Double
  ) {
    if let until = settlesUntil {
      // With fewer than wanted, it is the end of the file that limits them.
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
    // Rounded up: a step from fewer than there were would seem to gain nothing.
    let callCount = max(1, epochActive.callCount)
    let meanActive = (epochActive.sum + callCount - 1) / callCount
    beginEpoch(idle: idle, now: now)
    // A network thread that is busy, or waits for the disk, has all that it can take.
    guard idleShare >= Self.leastIdleShare else { return }
    // A pause of the reader says nothing about the line.
    guard !isFixed || target < maximum, elapsed < 10 * Self.epoch, isWaited, active >= target else {
      return
    }
    if let previous, previous.target > target {
      // What was under way goes on, and is not the smaller number's.
      guard meanActive <= target + target / 4 else { return }
      if goodput * Self.leastGain < previous.goodput { target = previous.target }
      return endTrial(now: now)
    }
    if let previous, goodput < Self.leastGoodput(after: previous, target) {
      target = previous.target
      return endTrial(now: now)
    }
    // A first step that is judged with care may be a long one.
    var factor = isEarly ? 4 : 2
    if let previous {
      proven = target
      holdTime = Self.holdTimes.lowerBound
      // If each connection brought as much as before, it has a limit of its own, and many more
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
    // What reads wait for may have taken more connections: the goodput is theirs, too.
    let used = min(max(target, meanActive), maximum)
    previous = (used, goodput)
    if isEarly {
      // As many as bring enough, if each brings what it does now.
      let enough = Self.enoughGoodput / max(1, goodput / Double(used))
      target = min(maximum, used * factor, max(used * 2, Int(min(enough.rounded(.up), 1e6))))
    } else {
      // Four times as many only where that is not far more than anybody needs.
      if factor > 2, goodput * Double(factor) > Self.enoughGoodput { factor = 2 }
      target = min(maximum, used * factor)
    }
    if flowing != nil { settlesUntil = now + Self.settlingTime }
  }

  /// The number of before the trial is as good, or the number that was tried is.
  private mutating func endTrial(now: Double) {
    isLinear = false
    proven = target
    previous = nil
    hold(from: now)
    // More and fewer in turns, when nothing has changed for long.
    triesFewer = !triesFewer && !isFixed && holdTime == Self.holdTimes.upperBound
  }

  private mutating func beginEpoch(idle: Double, now: Double) {
    epochStart = now
    epochIdle = idle
    epochByteCount = 0
    epochActive = (0, 0)
  }

  /// The goodput that justifies having gone from `previous` to `target` connections.
  private static func leastGoodput(
    after previous: (target: Int, goodput: Double), _ target: Int
  ) -> Double {
    var (least, count) = (previous.goodput * leastGain, previous.target * 2)
    while count < target { (least, count) = (least * leastGain, count * 2) }
    return least
  }

  /// Halves the count: the server refuses (403, 429, 503) or drops connections.
  public mutating func stepDown(now: Double) {
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
