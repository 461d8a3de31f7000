/// The servers that offer one file, and what is known of each; selects the server for each request.
///
/// A value without I/O; each download and each mounted file has one. An index from 0 in the list
/// identifies a server. A file with a single server has a set of one.
package struct MirrorSet: Sendable {
  /// The evidence that two servers have the same bytes.
  package enum Trust: Sendable, Hashable {
    /// Equal lengths and equal strong validators.
    case validators
    /// As ``validators``; failing that, an equal length: the whole is hashed at its end, after
    /// readers have seen bytes of it.
    case hashesAfterUse
    /// An equal length: bytes with a wrong hash are fetched again before any reader sees them.
    case hashesBeforeUse
  }

  /// What is known of a server's bytes, for the current version of the file.
  package enum Standing: Sendable, Hashable {
    /// No request has tested them yet.
    case untested
    /// They are the bytes of the version.
    case verified
    /// Their number is that of the version: the server is used if no ``verified`` server is
    /// available.
    case unproven
    /// They differ: the server gets no more requests for this version.
    case refused(reason: String)
    /// The server gets no requests for any version: a download drops such a server, while a mount
    /// has time to let it rest.
    case excluded(reason: String)
  }

  package struct Mirror: Sendable {
    package let url: RemoteURL
    package internal(set) var standing = Standing.untested
    /// Why the last request failed; nil if it succeeded.
    package internal(set) var failure: String?
    /// Until when other servers are preferred.
    package internal(set) var restsUntil: ContinuousClock.Instant?
    /// Bytes per second of one connection: a moving average; nil while unknown.
    package internal(set) var rate: Double?
    /// The number of requests in flight to it.
    package internal(set) var flightCount = 0
    /// How many requests it accepts at a time; nil if it has refused none.
    var flightLimit: Int?
    var failureCount = 0
    /// Whether it has answered that the file does not exist or is not accessible.
    var hasDenied = false
    /// The version as this server described it when its bytes were last accepted: each server has
    /// its own validators.
    package internal(set) var content: ContentVersion?

    /// Why the server gets no more requests; nil if it may get some.
    package var refusal: String? {
      switch standing {
      case .untested, .verified, .unproven: nil
      case .refused(let reason), .excluded(let reason): reason
      }
    }

    package var isRefused: Bool { refusal != nil }

    func isResting(_ now: ContinuousClock.Instant) -> Bool { restsUntil.map { now < $0 } ?? false }

    /// Whether the server can take one more request.
    ///
    /// An untested server gets one request, to show that it has the same bytes.
    var hasRoom: Bool { flightCount < (standing == .untested ? 1 : flightLimit ?? .max) }
  }

  package private(set) var mirrors: [Mirror]
  package let trust: Trust

  /// The server that first described the version, and decides whether the version has changed.
  ///
  /// Nil if an earlier mount learned the version without a record of the server.
  package private(set) var reference: Int?

  /// The only server to use while possible, because it is unknown which of several sent wrong
  /// bytes.
  package var exclusive: Int?

  /// How long a server that has failed is used last.
  private let rests: RetryPolicy

  /// - Parameters:
  ///   - urls: in the order of preference, at least one; duplicate URLs are one server.
  ///   - trust: the evidence that two servers have the same file.
  ///   - rests: how long a server that has failed is used last, by its failures in a row. A mount
  ///     can wait longer than a download, which gives up.
  package init(urls: [RemoteURL], trust: Trust, rests: RetryPolicy) {
    var known: Set<RemoteURL> = []
    mirrors = urls.filter { known.insert($0).inserted }.map { Mirror(url: $0) }
    self.trust = trust
    self.rests = rests
  }

  package var count: Int { mirrors.count }

  package subscript(index: Int) -> Mirror { mirrors[index] }

  // MARK: Selection

  /// Selects the server to ask about the file: the first that has not failed lately, otherwise the
  /// server whose rest ends first.
  ///
  /// - Parameters:
  ///   - tried: the servers that were asked already.
  ///   - silent: a server that does not bring the bytes; it is selected only if no other is ready.
  ///   - now: the time.
  /// - Returns: nil if no server is left.
  package func contact(
    except tried: Set<Int> = [], avoiding silent: Int? = nil, now: ContinuousClock.Instant
  ) -> Int? {
    let left = mirrors.indices.filter { !mirrors[$0].isRefused && !tried.contains($0) }
    return ready(of: left, avoiding: silent, now).first ?? soonest(of: left)
  }

  /// The candidates that do not rest, without `silent` if it is not the only one.
  private func ready(
    of candidates: [Int], avoiding silent: Int?, _ now: ContinuousClock.Instant
  ) -> [Int] {
    let ready = candidates.filter { !mirrors[$0].isResting(now) }
    let others = ready.filter { $0 != silent }
    return others.isEmpty ? ready : others
  }

  /// Selects the server for a range.
  ///
  /// Of the servers that agree, this is the one that would bring the range first, by its rate and
  /// its requests in flight. A range that no read waits for is an opportunity to try another
  /// server, with one request.
  ///
  /// - Parameters:
  ///   - isUrgent: whether a read waits for it.
  ///   - excluded: the servers that must not get this range.
  ///   - silent: a server that does not bring this range; it is selected only if no other is ready.
  ///   - now: the time.
  /// - Returns: nil if no server is left.
  package func choose(
    isUrgent: Bool, except excluded: Set<Int> = [], avoiding silent: Int? = nil,
    now: ContinuousClock.Instant
  ) -> Int? {
    let left = mirrors.indices.filter { !mirrors[$0].isRefused && !excluded.contains($0) }
    if let exclusive, left.contains(exclusive), !mirrors[exclusive].isResting(now) {
      return exclusive
    }
    let ready = ready(of: left, avoiding: silent, now)
    let verified = ready.filter { mirrors[$0].standing == .verified }
    let untested = ready.filter { mirrors[$0].standing == .untested }
    if !verified.isEmpty { return best(of: isUrgent ? verified : verified + untested) }
    return best(of: untested) ?? best(of: ready) ?? soonest(of: left)
  }

  private func best(of candidates: [Int]) -> Int? {
    let roomy = candidates.filter { mirrors[$0].hasRoom }
    // A server whose rate is unknown counts as fast as the fastest: nothing is known against it.
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

  /// Whether a server other than `index` can be used at once, for bytes that `index` does not bring
  /// soon.
  package func hasReady(besides index: Int, now: ContinuousClock.Instant) -> Bool {
    mirrors.indices.contains {
      $0 != index && !mirrors[$0].isRefused && !mirrors[$0].isResting(now)
    }
  }

  /// Whether a server that may still have the version is temporarily unavailable.
  ///
  /// If so, a server with another version does not replace it.
  package func hasUnavailable(besides index: Int, now: ContinuousClock.Instant) -> Bool {
    mirrors.indices.contains {
      $0 != index && !mirrors[$0].isRefused && mirrors[$0].isResting(now) && !mirrors[$0].hasDenied
    }
  }

  /// How long a server still rests after a failure.
  package func rest(of index: Int, now: ContinuousClock.Instant) -> Duration {
    mirrors[index].restsUntil.map { max(.zero, $0 - now) } ?? .zero
  }

  /// The servers that have not been refused.
  package var trusted: [Int] { mirrors.indices.filter { !mirrors[$0].isRefused } }

  /// Whether a server other than `index` has not been refused, resting or not.
  package func hasTrusted(besides index: Int) -> Bool { trusted.contains { $0 != index } }

  /// Whether a refused server may have another version.
  package var hasOtherVersions: Bool {
    mirrors.contains { if case .refused = $0.standing { true } else { false } }
  }

  /// The refused and excluded servers except `index`, with the reasons, in one line; nil for none.
  package func refusals(besides index: Int?) -> String? {
    let texts = mirrors.indices.compactMap { other in
      other == index
        ? nil : mirrors[other].refusal.map { "\(mirrors[other].url.redacted) (\($0))" }
    }
    return texts.isEmpty ? nil : texts.joined(separator: ", ")
  }

  // MARK: Verification

  /// What an answer shows about its server.
  package enum Judgement: Sendable, Hashable {
    /// The rules for a single server apply.
    case ordinary
    /// The bytes are those of the version.
    case same
    /// They may be, and no server with better evidence is available.
    case unproven
    /// No evidence that they are; the caller may use them as a last resort, or ask other servers.
    case declined
    /// They are different, or no evidence excludes that.
    case contradicts(reason: String)
  }

  /// Judges an answer about the version `pinned`, and updates the standing of the server.
  ///
  /// - Parameters:
  ///   - content: the version as the answer describes it.
  ///   - index: the server that answered.
  ///   - pinned: the wanted version.
  ///   - now: the time.
  /// - Returns: what the answer shows about its server.
  package mutating func judge(
    _ content: ContentVersion, from index: Int, pinned: ContentVersion,
    now: ContinuousClock.Instant
  ) -> Judgement {
    if trust != .hashesBeforeUse, index == reference || mirrors.count == 1 { return .ordinary }
    // A server that was accepted once is compared with its own earlier answer.
    if trust != .hashesBeforeUse, let own = mirrors[index].content {
      switch own.compare(content) {
      case .same: return mirrors[index].standing == .unproven ? .unproven : .same
      case .different, .unknown: return .contradicts(reason: "its file has changed")
      }
    }
    if let reason = Self.difference(pinned, content) { return .contradicts(reason: reason) }
    let isEnough = trust == .hashesBeforeUse && pinned.completeLength != nil
    if isEnough || Self.isProven(pinned, content) {
      recordAgreement(content, by: index)
      return .same
    }
    guard trust == .hashesAfterUse else {
      return .contradicts(reason: "its validators do not show that its file is the same")
    }
    let hasBetter = mirrors.indices.contains {
      $0 != index && mirrors[$0].standing == .verified && !mirrors[$0].isResting(now)
    }
    accept(content, from: index, as: .unproven)
    return hasBetter ? .declined : .unproven
  }

  private mutating func accept(
    _ content: ContentVersion, from index: Int, as standing: Standing
  ) {
    mirrors[index].content = content
    // An answer that was in flight when the server was refused does not readmit it.
    if !mirrors[index].isRefused { mirrors[index].standing = standing }
  }

  /// How two servers' files differ regardless of their validators; nil if they do not visibly
  /// differ.
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
  /// They do if both versions have the same strong tag, or if neither has a tag and the dates are
  /// equal and known not to be in the second of the change. Equal dates beside different tags are
  /// typical of copies and prove nothing; weak tags and lengths prove even less.
  static func isProven(_ pinned: ContentVersion, _ other: ContentVersion) -> Bool {
    guard pinned.completeLength != nil, pinned.compare(other) == .same else { return false }
    if let mine = pinned.entityTag, let theirs = other.entityTag {
      return !mine.isWeak && !theirs.isWeak
    }
    return pinned.lastModified != nil && other.dateStrength == .strong
  }

  // MARK: Updates

  /// Drops the wanted version, and with it the evidence that servers gave of it.
  package mutating func forgetVersion() {
    reference = nil
    for index in mirrors.indices {
      mirrors[index].content = nil
      if case .excluded = mirrors[index].standing { continue }
      mirrors[index].standing = .untested
    }
  }

  /// Records that a server has described a version that replaces the known one.
  package mutating func defined(_ content: ContentVersion, by index: Int) {
    forgetVersion()
    reference = index
    recordAgreement(content, by: index)
  }

  /// Records that an earlier mount got the version `content` from a server.
  ///
  /// Weak validators then distinguish versions of that server, as for a single server.
  package mutating func recalled(_ content: ContentVersion, of index: Int) {
    guard reference == nil else { return }
    reference = index
    recordAgreement(content, by: index)
  }

  /// Records that a server has described the wanted version.
  package mutating func recordAgreement(_ content: ContentVersion, by index: Int) {
    accept(content, from: index, as: .verified)
  }

  /// Readmits a refused server that has described the file as expected; it is asked about the file
  /// only if no other server is left.
  package mutating func readmit(_ index: Int) {
    if case .refused = mirrors[index].standing { mirrors[index].standing = .untested }
  }

  /// Records that a server has answered, or sent wanted bytes.
  ///
  /// - Parameters:
  ///   - index: the server.
  ///   - endsFailures: whether its next failure is the first in a row.
  package mutating func answered(_ index: Int, endsFailures: Bool = true) {
    mirrors[index].failure = nil
    mirrors[index].restsUntil = nil
    if endsFailures { mirrors[index].failureCount = 0 }
    mirrors[index].hasDenied = false
  }

  /// Records that a server has failed: other servers are preferred for a while.
  ///
  /// - Parameters:
  ///   - index: the server.
  ///   - reason: the cause, in one line.
  ///   - isDenial: whether the server answered that the file does not exist or is not accessible.
  ///   - retryAfter: the delay that the server asks for.
  ///   - random: a number in [0, 1], less than 1 if many clients should not return together.
  ///   - now: the time.
  /// - Returns: the number of failures in a row; requests that fail together count once.
  @discardableResult
  package mutating func failed(
    _ index: Int, reason: String, isDenial: Bool = false, retryAfter: Duration? = nil,
    random: Double = 1, now: ContinuousClock.Instant
  ) -> Int {
    mirrors[index].failure = reason
    mirrors[index].hasDenied = isDenial
    let isFirst = !mirrors[index].isResting(now)
    if isFirst { mirrors[index].failureCount += 1 }
    let failureCount = max(1, mirrors[index].failureCount)
    // Further requests that fail together do not prolong the rest: a request that waits for its
    // end, and fails again then, must count.
    var delay =
      isFirst
      ? rests.delay(failures: failureCount, retryAfter: retryAfter, random: random)
      : min(retryAfter ?? .zero, rests.retryAfterCeiling)
    if isDenial { delay = max(delay, rests.ceiling) }
    setAside(index, until: now + delay)
    return failureCount
  }

  /// Prefers other servers until `moment`, for a reason that may not be the server's.
  package mutating func setAside(_ index: Int, until moment: ContinuousClock.Instant) {
    mirrors[index].restsUntil = max(mirrors[index].restsUntil ?? moment, moment)
  }

  /// Refuses a server that contradicts the version: it gets no more requests for this version.
  ///
  /// - Returns: whether the server was not refused before.
  package mutating func refuse(_ index: Int, reason: String) -> Bool {
    if mirrors[index].isRefused { return false }
    mirrors[index].standing = .refused(reason: reason)
    if exclusive == index { exclusive = nil }
    return true
  }

  /// Excludes a server for all versions.
  package mutating func exclude(_ index: Int, reason: String) {
    mirrors[index].standing = .excluded(reason: reason)
    if exclusive == index { exclusive = nil }
  }

  // MARK: Requests

  package mutating func began(_ index: Int) { mirrors[index].flightCount += 1 }

  /// Records the end of a request; `bytesPerSecond` is the rate of its body, if meaningful.
  package mutating func ended(_ index: Int, bytesPerSecond: Double? = nil) {
    mirrors[index].flightCount -= 1
    measured(index, bytesPerSecond: bytesPerSecond)
  }

  /// Records the measured rate of a connection to a server, if known.
  package mutating func measured(_ index: Int, bytesPerSecond: Double?) {
    guard let bytesPerSecond else { return }
    mirrors[index].rate.average(in: bytesPerSecond)
  }

  /// Limits a server to the number of requests that it is answering now, at least one.
  package mutating func limitFlights(_ index: Int) {
    mirrors[index].flightLimit = max(1, mirrors[index].flightCount)
  }
}
