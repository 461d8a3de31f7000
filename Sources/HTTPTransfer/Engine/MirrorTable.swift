package import HTTPTransferCore

/// The servers of one download: which may be asked, and which is asked next.
///
/// A value without I/O. Of a request without mirrors it has one, which is never given up.
package struct MirrorTable: Sendable {
  /// What is known of one server.
  package struct Mirror: Sendable {
    /// Its URL, as given.
    package let url: RemoteURL
    /// Which URL of it is asked.
    package var location: ResourceLocation
    /// What it has described in this run: each server has validators of its own.
    package var version: ContentVersion?
    /// How often in a row it has failed.
    package fileprivate(set) var failureCount = 0
    /// Bytes per second of one connection: a moving average.
    fileprivate var rate: Double?
    fileprivate var restsUntil: ContinuousClock.Instant?
    /// How many requests it takes at a time; nil where it has refused none.
    fileprivate var limit: Int?
    fileprivate var standing = Standing.usable
  }

  /// Whether a mirror may be asked.
  fileprivate enum Standing {
    case usable
    /// It has another version than the one that is fetched: it comes into question when that cannot be had.
    case differs(reason: String)
    case excluded(reason: String)
  }

  private var mirrors: [Mirror]

  /// The only one that is asked, to find out which of several has served wrong bytes.
  package var focus: Int?

  /// - Parameters:
  ///   - urls: of the servers, at least one.
  ///   - isSigned: whether a signer makes the URLs that are asked.
  package init(_ urls: [RemoteURL], isSigned: Bool = false) {
    var unique: [RemoteURL] = []
    for url in urls where !unique.contains(url) { unique.append(url) }
    mirrors = unique.map {
      Mirror(url: $0, location: ResourceLocation(listed: $0, isSigned: isSigned))
    }
  }

  package var count: Int { mirrors.count }

  package subscript(index: Int) -> Mirror {
    get { mirrors[index] }
    set { mirrors[index] = newValue }
  }

  private func isUsable(_ index: Int) -> Bool {
    if case .usable = mirrors[index].standing { true } else { false }
  }

  /// Whether there is one to ask beside `index`.
  package func hasAnother(than index: Int) -> Bool {
    mirrors.indices.contains { $0 != index && isUsable($0) }
  }

  // MARK: Whom to ask

  /// Tells whom to ask next.
  ///
  /// - Parameters:
  ///   - activeCounts: how many requests of the download are with each.
  ///   - spreads: whether all are asked, in proportion to what their connections bring; else the first
  ///     that is not resting.
  ///   - now: the time.
  /// - Returns: the mirror; nil where none is left.
  package func next(
    activeCounts: [Int: Int], spreads: Bool, now: ContinuousClock.Instant
  ) -> Int? {
    if let focus, isUsable(focus) { return focus }
    let usable = mirrors.indices.filter(isUsable)
    let awake = usable.filter { rest(of: $0, now: now) == .zero }
    guard !awake.isEmpty else {
      return usable.min { rest(of: $0, now: now) < rest(of: $1, now: now) }
    }
    guard spreads else { return awake.first }
    // Who has not shown yet that he has the same bytes gets one request to do so.
    let roomy = awake.filter {
      let limit = mirrors[$0].version == nil ? 1 : mirrors[$0].limit ?? .max
      return activeCounts[$0, default: 0] < limit
    }
    // What has not been measured counts as the best: it is asked once, and then it is known.
    let best = awake.compactMap { mirrors[$0].rate }.max() ?? 1
    func load(_ index: Int) -> Double {
      Double(activeCounts[index, default: 0] + 1) / max(1, mirrors[index].rate ?? best)
    }
    return (roomy.isEmpty ? awake : roomy).min { (load($0), $0) < (load($1), $1) }
  }

  /// How long a mirror is still left alone after a failure.
  package func rest(of index: Int, now: ContinuousClock.Instant) -> Duration {
    mirrors[index].restsUntil.map { max(.zero, $0 - now) } ?? .zero
  }

  // MARK: What has happened

  /// Bytes of it were stored.
  package mutating func succeeded(_ index: Int, rate: Double?) {
    mirrors[index].failureCount = 0
    mirrors[index].restsUntil = nil
    guard let rate else { return }
    mirrors[index].rate = mirrors[index].rate.map { $0 * 0.7 + rate * 0.3 } ?? rate
  }

  /// It has failed in a way that may pass.
  ///
  /// - Parameters:
  ///   - index: which.
  ///   - moment: until when it is left alone.
  ///   - isCounted: whether the failure is its own.
  package mutating func failed(
    _ index: Int, until moment: ContinuousClock.Instant, isCounted: Bool = true
  ) {
    if isCounted { mirrors[index].failureCount += 1 }
    mirrors[index].restsUntil = moment
  }

  /// It takes no more than `count` requests at a time, at least one.
  package mutating func limit(_ index: Int, to count: Int) { mirrors[index].limit = max(1, count) }

  /// It is not asked again.
  package mutating func exclude(_ index: Int, reason: String) {
    mirrors[index].standing = .excluded(reason: reason)
    if focus == index { focus = nil }
  }

  /// It has another version than the one that is fetched.
  package mutating func setAside(_ index: Int, reason: String) {
    mirrors[index].standing = .differs(reason: reason)
    if focus == index { focus = nil }
  }

  /// Whether there are mirrors that were set aside.
  package var hasSetAside: Bool {
    mirrors.contains { if case .differs = $0.standing { true } else { false } }
  }

  /// Everything begins anew: which version is fetched is open again.
  package mutating func forgetVersions() {
    for index in mirrors.indices {
      mirrors[index].version = nil
      if case .differs = mirrors[index].standing { mirrors[index].standing = .usable }
    }
  }

  /// Those that are not asked any more, but for `index`, with the reasons: one line, nil where none is.
  package func failures(besides index: Int) -> String? {
    let texts = mirrors.indices.compactMap { other -> String? in
      guard other != index else { return nil }
      switch mirrors[other].standing {
      case .usable: return nil
      case .differs(let reason), .excluded(let reason):
        return "\(mirrors[other].url.redacted) (\(reason))"
      }
    }
    return texts.isEmpty ? nil : texts.joined(separator: ", ")
  }
}
