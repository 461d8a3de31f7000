/// The servers that are said to have one file, and what has been learned of each: says which of them the
/// next request goes to.
///
/// A value without I/O, of which a download and a mounted file have one each. Servers are named by their places in the list, from 0; a file of one server has a
/// set of one.
public struct MirrorSet: Sendable {
  /// What shows that two servers have the same bytes.
  public enum Trust: Sendable, Hashable {
    /// Equal lengths and equal validators that are strong.
    case validators
    /// As well, for want of better, an equal length: the whole is hashed at its end, and by then bytes of it
    /// have been seen.
    case hashesAfterUse
    /// An equal length: what does not hash to what it should is fetched again before anybody sees it.
    case hashesBeforeUse
  }

  /// What is known of a server's bytes, for the present version of the file.
  public enum Standing: Sendable, Hashable {
    /// Nothing yet.
    case untried
    /// They are those of the version.
    case agreed
    /// They are as many as those of the version: used where nobody who is ``agreed`` can be asked.
    case similar
    /// They are others: the server is not asked again for this version.
    case refused(reason: String)
    /// It is not asked again for any version: a download gives a server up, a mount has the time to let it
    /// rest.
    case excluded(reason: String)
  }

  public struct Mirror: Sendable {
    public let url: RemoteURL
    public internal(set) var standing = Standing.untried
    /// Why the last request failed; nil where it did not.
    public internal(set) var failure: String?
    /// Until when others are asked first.
    public internal(set) var restsUntil: ContinuousClock.Instant?
    /// Bytes per second of one connection: a moving average; nil while unknown.
    public internal(set) var rate: Double?
    /// How many requests it is answering.
    public internal(set) var flightCount = 0
    /// How many requests it takes at a time; nil where it has refused none.
    var flightLimit: Int?
    var failureCount = 0
    /// Whether it has said that the file is not there, or not for us.
    var hasDenied = false
    /// The version as it described it when that was last found to be the file's: each server has validators
    /// of its own.
    public internal(set) var content: ContentVersion?

    /// Why it is not asked any more; nil where it may be.
    public var refusal: String? {
      switch standing {
      case .untried, .agreed, .similar: nil
      case .refused(let reason), .excluded(let reason): reason
      }
    }

    public var isRefused: Bool { refusal != nil }

    func isResting(_ now: ContinuousClock.Instant) -> Bool { restsUntil.map { now < $0 } ?? false }

    /// Whether one more request is no more than it takes.
    ///
    /// Who has not shown yet that he has the same bytes gets one request to do so.
    var hasRoom: Bool { flightCount < (standing == .untried ? 1 : flightLimit ?? .max) }
  }

  public private(set) var mirrors: [Mirror]
  public let trust: Trust

  /// Who has described the version first, and whose word it is that it has changed; nil where an earlier
  /// mount has learned it and did not say of whom.
  public private(set) var definer: Int?

  /// Who alone is asked while that is possible: when nobody knows who of several has sent wrong bytes.
  public var sole: Int?

  /// How long a server that has failed is asked last.
  private let rests: RetryPolicy

  /// - Parameters:
  ///   - urls: in the order of preference, at least one; the same URL twice is one server.
  ///   - trust: what shows that two of them are the same file.
  ///   - rests: how long a server that has failed is asked last, by its failures in a row. Who asks for as
  ///     long as the mount lives can wait longer than a download, which gives up.
  public init(urls: [RemoteURL], trust: Trust, rests: RetryPolicy) {
    var known: Set<RemoteURL> = []
    mirrors = urls.filter { known.insert($0).inserted }.map { Mirror(url: $0) }
    self.trust = trust
    self.rests = rests
  }

  public var count: Int { mirrors.count }

  public subscript(index: Int) -> Mirror { mirrors[index] }

  // MARK: Choice

  /// Which server is asked about the file: the first that has not failed lately, else the one that rests
  /// for the shortest time.
  ///
  /// - Parameters:
  ///   - tried: who has been asked already.
  ///   - now: the time.
  /// - Returns: nil where nobody is left.
  public func contact(except tried: Set<Int> = [], now: ContinuousClock.Instant) -> Int? {
    let left = mirrors.indices.filter { !mirrors[$0].isRefused && !tried.contains($0) }
    return left.first { !mirrors[$0].isResting(now) } ?? soonest(of: left)
  }

  /// Which server a range is asked of.
  ///
  /// Of those who agree, the one that would bring it first, by its rate and by how much it is asked for
  /// already. What nobody waits for is a good occasion to try another one, by one request.
  ///
  /// - Parameters:
  ///   - isUrgent: whether a read waits for it.
  ///   - excluded: who must not be asked for this range.
  ///   - now: the time.
  /// - Returns: nil where nobody is left.
  public func choose(
    isUrgent: Bool, except excluded: Set<Int> = [], now: ContinuousClock.Instant
  ) -> Int? {
    let left = mirrors.indices.filter { !mirrors[$0].isRefused && !excluded.contains($0) }
    let ready = left.filter { !mirrors[$0].isResting(now) }
    if let sole, ready.contains(sole) { return sole }
    let agreed = ready.filter { mirrors[$0].standing == .agreed }
    let untried = ready.filter { mirrors[$0].standing == .untried }
    if !agreed.isEmpty { return best(of: isUrgent ? agreed : agreed + untried) }
    return best(of: untried) ?? best(of: ready) ?? soonest(of: left)
  }

  private func best(of candidates: [Int]) -> Int? {
    let roomy = candidates.filter { mirrors[$0].hasRoom }
    // Nothing is known against one that was never asked.
    let greatest = mirrors.lazy.compactMap(\.rate).max() ?? 1
    func cost(_ index: Int) -> Double {
      Double(mirrors[index].flightCount + 1) / max(1, mirrors[index].rate ?? greatest)
    }
    return (roomy.isEmpty ? candidates : roomy).min { (cost($0), $0) < (cost($1), $1) }
  }

  private func soonest(of candidates: [Int]) -> Int? {
    candidates.min { left, right in
      guard let first = mirrors[left].restsUntil, let second = mirrors[right].restsUntil else {
        return mirrors[left].restsUntil == nil && mirrors[right].restsUntil != nil
      }
      return first < second
    }
  }

  /// Whether a server beside `index` can be asked at once: what `index` does not bring soon is asked for
  /// there.
  public func hasReady(besides index: Int, now: ContinuousClock.Instant) -> Bool {
    mirrors.indices.contains {
      $0 != index && !mirrors[$0].isRefused && !mirrors[$0].isResting(now)
    }
  }

  /// Whether a server that may still have the version cannot be asked just now: who has another one in the
  /// meantime does not take its place.
  public func hasAbsent(besides index: Int, now: ContinuousClock.Instant) -> Bool {
    mirrors.indices.contains {
      $0 != index && !mirrors[$0].isRefused && mirrors[$0].isResting(now) && !mirrors[$0].hasDenied
    }
  }

  /// How long a server is still left alone after a failure.
  public func rest(of index: Int, now: ContinuousClock.Instant) -> Duration {
    mirrors[index].restsUntil.map { max(.zero, $0 - now) } ?? .zero
  }

  /// Who has not been refused.
  public var trusted: [Int] { mirrors.indices.filter { !mirrors[$0].isRefused } }

  /// Whether somebody beside `index` has not been refused, resting or not.
  public func hasTrusted(besides index: Int) -> Bool { trusted.contains { $0 != index } }

  /// Whether somebody was refused who may have another version.
  public var hasOtherVersions: Bool {
    mirrors.contains { if case .refused = $0.standing { true } else { false } }
  }

  /// Those that are not asked any more, but for `index`, with the reasons: one line, nil where none is.
  public func refusals(besides index: Int?) -> String? {
    let texts = mirrors.indices.compactMap { other in
      other == index
        ? nil : mirrors[other].refusal.map { "\(mirrors[other].url.redacted) (\($0))" }
    }
    return texts.isEmpty ? nil : texts.joined(separator: ", ")
  }

  // MARK: Judgement

  /// What an answer says of its server.
  public enum Judgement: Sendable, Hashable {
    /// It is to be judged by the rules for one server.
    case ordinary
    /// The bytes are those of the version.
    case same
    /// They may be: nobody who has shown more can be asked.
    case similar
    /// Nothing shows that they are; they may be used for want of better, and others can be asked.
    case declined
    /// They are others, or nothing shows that they are not.
    case contradicts(reason: String)
  }

  /// Judges an answer about the version `pinned`, and remembers what follows for the server.
  ///
  /// - Parameters:
  ///   - content: the version as the answer describes it.
  ///   - index: who has answered.
  ///   - pinned: the version that is wanted.
  ///   - now: the time.
  /// - Returns: what it says of its server.
  public mutating func judge(
    _ content: ContentVersion, from index: Int, pinned: ContentVersion,
    now: ContinuousClock.Instant
  ) -> Judgement {
    if trust != .hashesBeforeUse, index == definer || mirrors.count == 1 { return .ordinary }
    // What has been accepted of a server once is compared with its own word from then on.
    if trust != .hashesBeforeUse, let own = mirrors[index].content {
      switch own.compare(content) {
      case .same: return mirrors[index].standing == .similar ? .similar : .same
      case .different, .unknown: return .contradicts(reason: "its file has changed")
      }
    }
    if let reason = Self.difference(pinned, content) { return .contradicts(reason: reason) }
    let isEnough = trust == .hashesBeforeUse && pinned.completeLength != nil
    if isEnough || Self.isProven(pinned, content) {
      agreed(content, by: index)
      return .same
    }
    guard trust == .hashesAfterUse else {
      return .contradicts(reason: "its validators do not show that its file is the same")
    }
    let hasBetter = mirrors.indices.contains {
      $0 != index && mirrors[$0].standing == .agreed && !mirrors[$0].isResting(now)
    }
    accept(content, from: index, as: .similar)
    return hasBetter ? .declined : .similar
  }

  private mutating func accept(
    _ content: ContentVersion, from index: Int, as standing: Standing
  ) {
    mirrors[index].content = content
    // What is still under way when a server is refused does not bring it back.
    if !mirrors[index].isRefused { mirrors[index].standing = standing }
  }

  /// What two servers' files differ in whatever their validators are; nil where nothing shows that they do.
  private static func difference(
    _ pinned: ContentVersion, _ other: ContentVersion
  ) -> String? {
    if let mine = pinned.completeLength {
      guard let theirs = other.completeLength else { return "it does not say how long its file is" }
      if mine != theirs { return "its file has \(theirs) bytes, not \(mine)" }
    }
    return pinned.contentCoding == other.contentCoding ? nil : "its file is coded otherwise"
  }

  /// Whether equal validators show that two servers have the same bytes.
  ///
  /// A tag is strong and the same, or neither has one and the dates are equal and known not to be of the
  /// second of the change. Equal dates beside different tags are what copies look like, and prove nothing;
  /// weak tags and lengths do even less.
  static func isProven(_ pinned: ContentVersion, _ other: ContentVersion) -> Bool {
    guard pinned.completeLength != nil, pinned.compare(other) == .same else { return false }
    if let mine = pinned.entityTag, let theirs = other.entityTag {
      return !mine.isWeak && !theirs.isWeak
    }
    return pinned.lastModified != nil && other.dateStrength == .strong
  }

  // MARK: Learning

  /// The version that was wanted is given up: what servers have shown of it is of no account any more.
  public mutating func forgetVersion() {
    definer = nil
    for index in mirrors.indices {
      mirrors[index].content = nil
      if case .excluded = mirrors[index].standing { continue }
      mirrors[index].standing = .untried
    }
  }

  /// A server has described a version that takes the place of what was known.
  public mutating func defined(_ content: ContentVersion, by index: Int) {
    forgetVersion()
    definer = index
    agreed(content, by: index)
  }

  /// An earlier mount had the version `content` from a server: weak validators tell its versions apart, as
  /// they do for one that is alone.
  public mutating func recalled(_ content: ContentVersion, of index: Int) {
    guard definer == nil else { return }
    definer = index
    agreed(content, by: index)
  }

  /// A server has described the version that is wanted.
  public mutating func agreed(_ content: ContentVersion, by index: Int) {
    accept(content, from: index, as: .agreed)
  }

  /// A server that was refused has described the file as it should be; it is asked about it only where
  /// nobody else is left.
  public mutating func readmit(_ index: Int) {
    if case .refused = mirrors[index].standing { mirrors[index].standing = .untried }
  }

  /// A server has answered, or sent bytes that are wanted.
  public mutating func answered(_ index: Int) {
    mirrors[index].failure = nil
    mirrors[index].restsUntil = nil
    mirrors[index].failureCount = 0
    mirrors[index].hasDenied = false
  }

  /// A server has failed: others are asked first for a while.
  ///
  /// - Parameters:
  ///   - index: which.
  ///   - reason: why, in one line.
  ///   - isDenial: whether it has said that it does not have the file, or not for us.
  ///   - retryAfter: how long it has asked to be left alone.
  ///   - random: a number in [0, 1], less than 1 where many clients should not return together.
  ///   - now: the time.
  /// - Returns: how often in a row it has failed; requests that fail together are one failure.
  @discardableResult
  public mutating func failed(
    _ index: Int, reason: String, isDenial: Bool = false, retryAfter: Duration? = nil,
    random: Double = 1, now: ContinuousClock.Instant
  ) -> Int {
    mirrors[index].failure = reason
    mirrors[index].hasDenied = isDenial
    let isFirst = !mirrors[index].isResting(now)
    if isFirst { mirrors[index].failureCount += 1 }
    let failureCount = max(1, mirrors[index].failureCount)
    // The others of those that fail together do not prolong the rest: whoever waits for its end, and fails
    // again then, is to count.
    var delay =
      isFirst
      ? rests.delay(failures: failureCount, retryAfter: retryAfter, random: random)
      : min(retryAfter ?? .zero, rests.retryAfterCeiling)
    if isDenial { delay = max(delay, rests.ceiling) }
    setAside(index, until: now + delay)
    return failureCount
  }

  /// Others are asked first until `moment`, for a reason that may not be the server's.
  public mutating func setAside(_ index: Int, until moment: ContinuousClock.Instant) {
    mirrors[index].restsUntil = max(mirrors[index].restsUntil ?? moment, moment)
  }

  /// A server contradicts the version: it is not asked again for it.
  ///
  /// - Returns: whether that is news.
  public mutating func refuse(_ index: Int, reason: String) -> Bool {
    if mirrors[index].isRefused { return false }
    mirrors[index].standing = .refused(reason: reason)
    if sole == index { sole = nil }
    return true
  }

  /// A server is given up, whatever the version.
  public mutating func exclude(_ index: Int, reason: String) {
    mirrors[index].standing = .excluded(reason: reason)
    if sole == index { sole = nil }
  }

  // MARK: Requests

  public mutating func began(_ index: Int) { mirrors[index].flightCount += 1 }

  /// A request has ended; `bytesPerSecond` is what its body came at, where that means something.
  public mutating func ended(_ index: Int, bytesPerSecond: Double? = nil) {
    mirrors[index].flightCount -= 1
    measured(index, bytesPerSecond: bytesPerSecond)
  }

  /// A connection to a server brings that much, where it is known.
  public mutating func measured(_ index: Int, bytesPerSecond: Double?) {
    guard let bytesPerSecond else { return }
    mirrors[index].rate.average(in: bytesPerSecond)
  }

  /// A server takes no more requests at a time than it is answering now, at least one.
  public mutating func limitFlights(_ index: Int) {
    mirrors[index].flightLimit = max(1, mirrors[index].flightCount)
  }
}
