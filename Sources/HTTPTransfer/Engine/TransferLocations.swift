internal import HTTPTransferCore

/// Which URL each request of a transfer goes to, while URLs expire.
///
/// A value without I/O. Requests are named by their segments.
struct TransferLocations: Sendable {
  private var locations: [ResourceLocation]
  /// The segments that wait for a URL.
  private var unplaced: [Int] = []
  /// The segment whose request finds out where the bytes are, for all.
  private(set) var scout: Int?
  /// Whether nobody knows where the bytes are: one request asks.
  private var isLost = false
  private var isSigning = false
  /// How often in a row the signer has failed.
  private var signerFailureCount = 0

  init(servers: [RemoteURL], isSigned: Bool) {
    locations = servers.map { ResourceLocation(listed: $0, isSigned: isSigned) }
  }

  subscript(mirror: Int) -> ResourceLocation { locations[mirror] }

  /// Where the servers are asked for bytes now.
  var origins: Set<String> { Set(locations.compactMap { $0.current?.normalizedOrigin }) }

  /// Whether requests wait for a URL.
  var areAwaited: Bool { !unplaced.isEmpty }

  /// Whether it is not known where to ask for more than one request's bytes.
  var areUnknown: Bool { isLost || scout != nil }

  /// The URL that the request of a segment to a mirror goes to; nil where the segment waits for one.
  mutating func place(_ id: Int, at mirror: Int, now: ContinuousClock.Instant) -> RemoteURL? {
    guard locations.count == 1 else {
      let followsAgain = locations[mirror].takeTargetRenewal(now: now)
      return followsAgain ? locations[mirror].listed : locations[mirror].current
    }
    guard let base = locations[0].base else {
      unplaced.append(id)
      return nil
    }
    if let redirected = locations[0].redirected {
      // One request finds out where the bytes will be, the others go on meanwhile.
      guard scout == nil, locations[0].takeTargetRenewal(now: now) else { return redirected }
      scout = id
    } else if isLost {
      guard scout == nil else {
        unplaced.append(id)
        return nil
      }
      scout = id
    }
    return base
  }

  /// The segments that waited for a URL.
  mutating func takeUnplaced() -> [Int] {
    defer { unplaced = [] }
    return unplaced
  }

  /// The request to a server that began at `asked` was answered by `url` with what it asked for.
  ///
  /// - Returns: whether those that wait for a URL can be sent.
  mutating func noteAnswer(
    from url: RemoteURL, asked: RemoteURL, by mirror: Int, now: ContinuousClock.Instant
  ) -> Bool {
    let isFromBase = asked == locations[mirror].base
    locations[mirror].noteAnswer(from: url, asked: asked, now: now, sinceEpoch: timeSinceEpoch())
    guard isFromBase, areUnknown else { return false }
    isLost = false
    scout = nil
    return true
  }

  /// A request was refused.
  mutating func noteRefusal(
    of asked: RemoteURL, by mirror: Int, now: ContinuousClock.Instant
  ) -> ResourceLocation.Refusal {
    let refusal = locations[mirror].noteRefusal(of: asked, now: now)
    // From now on one request is to find the way for all.
    if locations.count == 1, case .expired = refusal, locations[0].redirected == nil {
      isLost = true
    }
    return refusal
  }

  /// The request that was to find the way has ended: another one may.
  mutating func endScout() { scout = nil }

  // MARK: The signer

  /// Whether the signer is to be asked now.
  mutating func takeSignerTurn(now: ContinuousClock.Instant) -> Bool {
    locations.count == 1 && locations[0].takeSignerTurn(now: now)
  }

  /// Whether the signer may be asked: it is not being asked already.
  mutating func beginSigning() -> Bool {
    defer { isSigning = true }
    return !isSigning
  }

  mutating func endSigning() { isSigning = false }

  mutating func noteSigned(_ url: RemoteURL, now: ContinuousClock.Instant) {
    signerFailureCount = 0
    locations[0].noteSigned(url, now: now, sinceEpoch: timeSinceEpoch())
    isLost = false
  }

  /// The signer has failed.
  ///
  /// - Returns: how often in a row.
  mutating func noteSignerFailure() -> Int {
    signerFailureCount += 1
    return signerFailureCount
  }
}
