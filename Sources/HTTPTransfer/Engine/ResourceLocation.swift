internal import Glibc
package import HTTPTransferCore

/// Where a file is asked for now: at its listed URL, at one that a signer has made of that, or where
/// redirects from there have led, which is remembered while it answers.
///
/// A value without I/O.
package struct ResourceLocation: Sendable {
  /// What names the file.
  package let listed: RemoteURL
  /// Whether a signer makes the URLs that are asked.
  package let isSigned: Bool
  private var signed: PassingURL?
  private var target: PassingURL?
  /// How many new URLs in a row were refused before one has answered.
  private var fruitlessCount = 0

  /// Servers of one host may disagree for a moment; what so many new URLs meet is a refusal.
  private static let fruitlessLimit = 3

  package init(listed: RemoteURL, isSigned: Bool = false) {
    self.listed = listed
    self.isSigned = isSigned
  }

  /// Where a request begins that finds out where the bytes are; nil while the signer is to be asked
  /// first.
  package var base: RemoteURL? { isSigned ? signed?.url : listed }

  /// Where redirects from there have led; nil where to nothing else, or not known.
  package var redirected: RemoteURL? { target?.url }

  /// Where bytes are asked for.
  package var current: RemoteURL? { base == nil ? nil : target?.url ?? base }

  // MARK: Renewal

  /// Whether the signer is to be asked now: where there is no URL yet, and once some time before the
  /// present one expires by its own word.
  package mutating func takeSignerTurn(now: ContinuousClock.Instant) -> Bool {
    guard isSigned else { return false }
    return signed == nil || signed?.takeRenewal(now: now) == true
  }

  /// Whether it is time to follow the redirects again, because what they have led to expires soon; says
  /// so once.
  package mutating func takeTargetRenewal(now: ContinuousClock.Instant) -> Bool {
    target?.takeRenewal(now: now) == true
  }

  // MARK: What becomes known

  /// The signer has made a URL just now.
  package mutating func noteSigned(
    _ url: RemoteURL, now: ContinuousClock.Instant, sinceEpoch: Duration
  ) {
    signed = PassingURL(url, now: now, sinceEpoch: sinceEpoch)
    target = nil
  }

  /// A request has been answered with what was asked for.
  ///
  /// - Parameters:
  ///   - url: where the answer came from, after redirects.
  ///   - asked: where the request began.
  ///   - now: the time.
  ///   - sinceEpoch: the same by the clock on the wall, since 1970.
  package mutating func noteAnswer(
    from url: RemoteURL, asked: RemoteURL, now: ContinuousClock.Instant, sinceEpoch: Duration
  ) {
    fruitlessCount = 0
    if asked == target?.url {
      target?.hasServed = true
      if url == asked { return }
    } else if asked != base {
      // An answer from where nobody is sent any more.
      return
    }
    if let base, url == base || url.text == base.withoutUserInfo {
      target = nil
      signed?.hasServed = true
    } else {
      target = PassingURL(url, now: now, sinceEpoch: sinceEpoch)
      target?.hasServed = true
    }
  }

  /// What a refusal (401, 403, 404, 410) means.
  package enum Refusal: Sendable {
    /// The URL has expired: another one is to be asked.
    case expired
    /// The URL is new and has served others: they are too many.
    case tooMany
    /// The file is refused.
    case final
  }

  /// The request that began at `asked` was refused.
  package mutating func noteRefusal(
    of asked: RemoteURL, now: ContinuousClock.Instant
  ) -> Refusal {
    if let target, asked == target.url {
      if target.isNewAndGood(now: now) { return .tooMany }
      self.target = nil
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

  private mutating func countedRenewal() -> Refusal {
    fruitlessCount += 1
    guard fruitlessCount > Self.fruitlessLimit else { return .expired }
    fruitlessCount = 0
    return .final
  }

  /// Forgets where the listed URL has led.
  package mutating func forget() { self = ResourceLocation(listed: listed, isSigned: isSigned) }
}

/// The time by the clock on the wall, since 1970.
package func timeSinceEpoch() -> Duration {
  var now = timespec()
  clock_gettime(CLOCK_REALTIME, &now)
  return .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec)
}

/// The same in days.
package func daysSinceEpoch() -> Int { Int(timeSinceEpoch() / .seconds(86_400)) }

/// A URL that may be good for a while only.
private struct PassingURL: Sendable {
  let url: RemoteURL
  /// Whether it has answered with what was asked for.
  var hasServed = false
  private let learnedAt: ContinuousClock.Instant
  /// From when on another one is to be had; nil where the URL does not tell, or one is being had.
  private var renewalTime: ContinuousClock.Instant?

  /// How long before its end a URL is renewed at most.
  private static let greatestMargin = Duration.seconds(60)

  /// What has been good is taken not to have expired within so short a time.
  private static let leastLife = Duration.seconds(1)

  init(_ url: RemoteURL, now: ContinuousClock.Instant, sinceEpoch: Duration) {
    self.url = url
    learnedAt = now
    guard let expiry = url.signatureExpiry else { return }
    // One that has expired already says that the two clocks differ.
    let life = Duration.seconds(expiry) - sinceEpoch
    guard life > .zero else { return }
    renewalTime = now + life - min(Self.greatestMargin, life / 5)
  }

  func isNewAndGood(now: ContinuousClock.Instant) -> Bool {
    hasServed && now - learnedAt < Self.leastLife
  }

  /// Whether it is time for another one; says so once.
  mutating func takeRenewal(now: ContinuousClock.Instant) -> Bool {
    guard let renewalTime, renewalTime <= now else { return false }
    self.renewalTime = nil
    return true
  }
}
