internal import Glibc
package import HTTPTransferCore

/// The URL at which a file is requested now.
///
/// It is the listed URL, a URL that a signer made from it, or the target of redirects from there,
/// which is remembered while it answers.
///
/// A value without I/O.
package struct ResourceLocation: Sendable {
  /// The URL that names the file.
  package let listed: RemoteURL
  /// Whether a signer makes the requested URLs.
  package let isSigned: Bool
  private var signed: ExpiringURL?
  private var target: ExpiringURL?
  /// How many new URLs in a row were refused since the last answer.
  private var fruitlessCount = 0
  /// How many targets in a row were left before they answered a request that was sent to them.
  private var unusedTargetCount = 0
  /// When the last one of them was left.
  private var targetLeftAt: ContinuousClock.Instant?

  /// The servers of one host may disagree for a moment; more refusals in a row than this are final.
  private static let fruitlessLimit = 3

  /// After so many targets of one use, every request follows the redirects.
  private static let unusedTargetLimit = 2

  /// For how long they do.
  private static let unusedTargetMemory = Duration.seconds(60)

  package init(listed: RemoteURL, isSigned: Bool = false) {
    self.listed = listed
    self.isSigned = isSigned
  }

  /// The URL for a request that finds out where the bytes are; nil until the signer has made one.
  package var base: RemoteURL? { isSigned ? signed?.url : listed }

  /// The target of redirects from ``base``; nil if there are none, or if it is not known.
  package var redirected: RemoteURL? { target?.url }

  /// The URL for requests of bytes.
  package var current: RemoteURL? { base == nil ? nil : target?.url ?? base }

  // MARK: Renewal

  /// Whether to ask the signer now.
  ///
  /// That is so while there is no URL, and once shortly before the current one expires, if it tells
  /// when.
  package mutating func takeSignerTurn(now: ContinuousClock.Instant) -> Bool {
    guard isSigned else { return false }
    return signed == nil || signed?.takeRenewal(now: now) == true
  }

  /// Whether to follow the redirects again because their target expires soon; true only once.
  package mutating func takeTargetRenewal(now: ContinuousClock.Instant) -> Bool {
    target?.takeRenewal(now: now) == true
  }

  // MARK: Updates

  /// Records a URL that the signer has just made.
  package mutating func recordSigned(
    _ url: RemoteURL, now: ContinuousClock.Instant, sinceEpoch: Duration
  ) {
    signed = ExpiringURL(url, now: now, sinceEpoch: sinceEpoch)
    target = nil
  }

  /// Records that a request was answered successfully.
  ///
  /// - Parameters:
  ///   - url: the source of the answer, after redirects.
  ///   - asked: the URL of the request.
  ///   - now: the time.
  ///   - sinceEpoch: the same time by the system clock, since 1970.
  package mutating func recordAnswer(
    from url: RemoteURL, asked: RemoteURL, now: ContinuousClock.Instant, sinceEpoch: Duration
  ) {
    fruitlessCount = 0
    if asked == target?.url {
      target?.hasServedItself = true
      unusedTargetCount = 0
      if url == asked { return }
    } else if asked != base {
      // The answer is from a URL that is no longer in use.
      return
    }
    if let base, url == base || url.text == base.withoutUserInfo {
      target = nil
      signed?.hasServed = true
    } else if !hasTargetsOfOneUse(now: now) {
      target = ExpiringURL(url, now: now, sinceEpoch: sinceEpoch)
      target?.hasServed = true
    }
  }

  /// The meaning of a refusal (401, 403, 404, 410).
  package enum Refusal: Sendable {
    /// The URL has expired: request another one.
    case expired
    /// The URL is new and has served requests: there are too many at once.
    case tooMany
    /// The file is refused.
    case final
  }

  /// Records that the request to `asked` was refused.
  package mutating func recordRefusal(
    of asked: RemoteURL, now: ContinuousClock.Instant
  ) -> Refusal {
    if asked == target?.url {
      guard leaveTarget(now: now) else { return .tooMany }
      // The next request goes to the URL that has led to targets of one use.
      if hasTargetsOfOneUse(now: now) { return .expired }
      return countedRenewal()
    }
    if isSigned, asked == signed?.url {
      if signed?.isNewAndGood(now: now) == true { return .tooMany }
      signed = nil
      target = nil
      return countedRenewal()
    }
    return !isSigned && asked == listed ? .final : .expired
  }

  /// Records that no server answered the request to `asked`, that the server cannot serve now, or
  /// that its answer is of no use for the file.
  ///
  /// The bytes may have moved: redirects are followed again, or the signer makes another URL.
  ///
  /// - Returns: whether the next request goes to another URL than `asked`.
  package mutating func recordFailure(of asked: RemoteURL, now: ContinuousClock.Instant) -> Bool {
    if asked == target?.url {
      return leaveTarget(now: now)
    }
    if isSigned, let signed, asked == signed.url {
      guard signed.isOld(now: now) else { return false }
      self.signed = nil
      target = nil
      return true
    }
    return asked != base
  }

  /// Follows the redirects again from now on.
  ///
  /// - Returns: false if the target has just been learned, so that they would lead there again.
  private mutating func leaveTarget(now: ContinuousClock.Instant) -> Bool {
    if target?.takeDisuse() == true {
      unusedTargetCount = wasTargetLeft(before: now) ? unusedTargetCount + 1 : 1
      targetLeftAt = now
    }
    guard hasTargetsOfOneUse(now: now) || target?.isNewAndGood(now: now) != true
    else { return false }
    target = nil
    return true
  }

  /// Whether the redirects seem to lead to targets that answer one request each.
  private func hasTargetsOfOneUse(now: ContinuousClock.Instant) -> Bool {
    unusedTargetCount >= Self.unusedTargetLimit && wasTargetLeft(before: now)
  }

  /// Whether a target was left before its use in the last minute.
  private func wasTargetLeft(before now: ContinuousClock.Instant) -> Bool {
    targetLeftAt.map { now - $0 < Self.unusedTargetMemory } ?? false
  }

  private mutating func countedRenewal() -> Refusal {
    fruitlessCount += 1
    guard fruitlessCount > Self.fruitlessLimit else { return .expired }
    fruitlessCount = 0
    return .final
  }

  /// Forgets the signed URL and the target of redirects.
  package mutating func forget() { self = ResourceLocation(listed: listed, isSigned: isSigned) }
}

/// The time by the system clock, since 1970.
package func timeSinceEpoch() -> Duration {
  var now = timespec()
  clock_gettime(CLOCK_REALTIME, &now)
  return .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec)
}

/// The time by the system clock, in days since 1970.
package func daysSinceEpoch() -> Int { Int(timeSinceEpoch() / .seconds(86_400)) }

/// A URL that may expire.
private struct ExpiringURL: Sendable {
  let url: RemoteURL
  /// Whether it has answered successfully.
  var hasServed = false
  /// Whether it has answered a request that was sent to it, not to the URL that leads to it.
  var hasServedItself = false
  private var isDisused = false
  private let learnedAt: ContinuousClock.Instant
  /// When to renew it; nil if the URL does not tell, or if a renewal has begun.
  private var renewalTime: ContinuousClock.Instant?

  /// The maximum time by which a URL is renewed before it expires.
  private static let maximumMargin = Duration.seconds(60)

  /// A URL that served is assumed not to have expired this soon after it was learned.
  private static let minimumLife = Duration.seconds(1)

  /// The minimum time between two runs of the signer while its URLs cannot be reached.
  private static let signerInterval = Duration.seconds(5)

  init(_ url: RemoteURL, now: ContinuousClock.Instant, sinceEpoch: Duration) {
    self.url = url
    learnedAt = now
    guard let expiry = url.signatureExpiry else { return }
    // If it has already expired, the two clocks differ.
    let life = Duration.seconds(expiry) - sinceEpoch
    guard life > .zero else { return }
    renewalTime = now + life - min(Self.maximumMargin, life / 5)
  }

  func isNewAndGood(now: ContinuousClock.Instant) -> Bool {
    hasServed && now - learnedAt < Self.minimumLife
  }

  /// Whether it refuses although it has not yet answered a request that was sent to it; true only
  /// once.
  mutating func takeDisuse() -> Bool {
    guard !hasServedItself, !isDisused else { return false }
    isDisused = true
    return true
  }

  /// Whether another run of the signer may lead elsewhere.
  func isOld(now: ContinuousClock.Instant) -> Bool { now - learnedAt >= Self.signerInterval }

  /// Whether it is time for a renewal; true only once.
  mutating func takeRenewal(now: ContinuousClock.Instant) -> Bool {
    guard let renewalTime, renewalTime <= now else { return false }
    self.renewalTime = nil
    return true
  }
}
