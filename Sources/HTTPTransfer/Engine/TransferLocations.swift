internal import HTTPTransferCore

/// Decides which URL each request of a transfer goes to, while URLs expire.
///
/// A value without I/O. Requests are named by their segments.
struct TransferLocations: Sendable {
  private var locations: [ResourceLocation]
  /// The segments that wait for a URL.
  private var unplaced: [Int] = []
  /// The segment whose request finds the location of the bytes for all others.
  private(set) var scout: Int?
  /// Whether the location of the bytes is unknown, so that one request must find it.
  private var isLost = false
  private var isSigning = false
  /// The number of consecutive failures of the signer.
  private var signerFailureCount = 0

  init(servers: [RemoteURL], isSigned: Bool) {
    locations = servers.map { ResourceLocation(listed: $0, isSigned: isSigned) }
  }

  subscript(mirror: Int) -> ResourceLocation { locations[mirror] }

  /// The origins that are currently requested for bytes.
  var origins: Set<String> { Set(locations.compactMap { $0.current?.normalizedOrigin }) }

  /// Whether requests wait for a URL.
  var areAwaited: Bool { !unplaced.isEmpty }

  /// Whether the location of the bytes is unknown, or a request is finding it.
  var areUnknown: Bool { isLost || scout != nil }

  /// The URL for the request of a segment to a mirror; nil if the segment must wait for one.
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
      // One request finds the new location, while the others continue at the old one.
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

  /// Returns the segments that waited for a URL, and clears the list.
  mutating func takeUnplaced() -> [Int] {
    defer { unplaced = [] }
    return unplaced
  }

  /// Records that `url` answered the request to `asked` successfully.
  ///
  /// - Returns: whether the requests that wait for a URL can be sent.
  mutating func recordAnswer(
    from url: RemoteURL, asked: RemoteURL, by mirror: Int, now: ContinuousClock.Instant
  ) -> Bool {
    let isFromBase = asked == locations[mirror].base
    locations[mirror].recordAnswer(from: url, asked: asked, now: now, sinceEpoch: timeSinceEpoch())
    guard isFromBase, areUnknown else { return false }
    isLost = false
    scout = nil
    return true
  }

  /// Records that a request was refused.
  mutating func recordRefusal(
    of asked: RemoteURL, by mirror: Int, now: ContinuousClock.Instant
  ) -> ResourceLocation.Refusal {
    let refusal = locations[mirror].recordRefusal(of: asked, now: now)
    // From now on, one request finds the location for all.
    if locations.count == 1, case .expired = refusal, locations[0].redirected == nil {
      isLost = true
    }
    return refusal
  }

  /// Records that no server answered a request, or that the server cannot serve now.
  ///
  /// - Returns: whether the next request goes to another URL.
  mutating func recordFailure(
    of asked: RemoteURL, by mirror: Int, now: ContinuousClock.Instant
  ) -> Bool {
    let hasMoved = locations[mirror].recordFailure(of: asked, now: now)
    if locations.count == 1, hasMoved, locations[0].redirected == nil { isLost = true }
    return hasMoved
  }

  /// Lets another request find the location, because that of the scout has ended.
  mutating func endScout() { scout = nil }

  // MARK: URL signing

  /// Whether to ask the signer now.
  mutating func takeSignerTurn(now: ContinuousClock.Instant) -> Bool {
    locations.count == 1 && locations[0].takeSignerTurn(now: now)
  }

  /// Marks the signer as being asked; false if it was already.
  mutating func beginSigning() -> Bool {
    defer { isSigning = true }
    return !isSigning
  }

  mutating func endSigning() { isSigning = false }

  mutating func recordSigned(_ url: RemoteURL, now: ContinuousClock.Instant) {
    signerFailureCount = 0
    locations[0].recordSigned(url, now: now, sinceEpoch: timeSinceEpoch())
    isLost = false
  }

  /// Records a failure of the signer.
  ///
  /// - Returns: the number of consecutive failures.
  mutating func recordSignerFailure() -> Int {
    signerFailureCount += 1
    return signerFailureCount
  }
}
