internal import HTTPTransferCore
internal import HTTPTypes

/// Decides which server each request of a transfer goes to, and whose bytes are trusted.
///
/// A value without I/O.
struct TransferServers: Sendable {
  /// The state of each server.
  var mirrors: MirrorSet
  /// The URLs to request on each server.
  var locations: TransferLocations
  /// The servers that brought the present bytes.
  private var fileChecksum = FileChecksum()
  /// What each server has brought since its last series of failures.
  private var progress: [Int: StoredProgress] = [:]

  init(_ request: Request, trust: MirrorSet.Trust) {
    let isSigned = request.signer != nil && request.method == .get
    // The signer makes URLs of the first server.
    let others = request.method == .get && !isSigned ? request.mirrors : []
    mirrors = MirrorSet(urls: [request.url] + others, trust: trust, rests: request.retryPolicy)
    locations = TransferLocations(servers: mirrors.mirrors.map(\.url), isSigned: isSigned)
  }

  /// The URL at which a server is requested now.
  func url(of mirror: Int) -> RemoteURL { locations[mirror].current ?? mirrors[mirror].url }

  // MARK: Selection

  /// The mirror for the request of a segment; the first one if none is left.
  ///
  /// `silent` is one that does not bring its bytes: another one is more likely to.
  func next(
    for segment: SegmentTable.Segment, avoiding silent: Int?, of representation: Representation
  ) -> Int {
    // A piece that must come from one mirror stays with it as long as that is not refused.
    if segment.suspectPiece != nil, let mirror = segment.mirror, !mirrors[mirror].isRefused {
      return mirror
    }
    let others =
      segment.excludedMirrors.isEmpty
      ? nil : next(of: representation, except: segment.excludedMirrors)
    return others ?? next(of: representation, avoiding: silent) ?? 0
  }

  /// The mirror for a request; nil if none is left.
  func next(
    of representation: Representation, except excluded: Set<Int> = [], avoiding silent: Int? = nil
  ) -> Int? {
    guard mirrors.count > 1 else { return 0 }
    // A download can wait until this mirror is available; a reader would not.
    if let exclusive = mirrors.exclusive { return exclusive }
    return representation.canSpread(mirrors.trust)
      ? mirrors.choose(isUrgent: false, except: excluded, avoiding: silent, now: .now)
      : mirrors.contact(except: excluded, avoiding: silent, now: .now)
  }

  // MARK: Updates

  /// Records that an earlier run stored bytes of unknown servers.
  mutating func recordEarlierBytes() { fileChecksum.hasEarlierBytes = true }

  /// Records that bytes of a server were stored.
  ///
  /// - Parameters:
  ///   - byteCount: how many of them were absent.
  ///   - enough: how many end a series of failures.
  ///   - mirror: the server.
  ///   - rate: their speed in bytes per second; nil if unknown.
  mutating func recordStored(
    _ byteCount: Int64, enough: Int64, from mirror: Int, rate: Double?
  ) {
    guard mirrors.count > 1 else { return }
    fileChecksum.recordStored(from: mirror)
    let endsFailures = progress[mirror, default: StoredProgress()].ends(
      with: byteCount, enough: enough)
    mirrors.answered(mirror, endsFailures: endsFailures)
    mirrors.measured(mirror, bytesPerSecond: rate)
  }

  /// Records the failure of a hedge, whose bytes the other request may still bring.
  ///
  /// - Returns: whether the next hedge goes to another server.
  mutating func recordHedgeFailure(
    _ error: TransferError, after retryAfter: Duration?, of index: Int
  ) -> Bool {
    guard mirrors.count > 1, error.isOfServer else { return false }
    if error.status != nil, mirrors[index].flightCount > 0 {
      // A refusal of one connection too many says nothing about the others.
      mirrors.limitFlights(index)
      return false
    }
    mirrors.failed(
      index, reason: error.reason, retryAfter: retryAfter, random: .random(in: 0..<1), now: .now)
    return mirrors.hasReady(besides: index, now: .now)
  }

  /// Forgets the versions and the stored bytes, because the transfer starts over.
  mutating func forget() {
    mirrors.forgetVersion()
    fileChecksum.forgetBytes()
  }

  /// Decides what to do with a whole that does not have the expected checksum.
  mutating func judgeWhole() -> FileChecksum.Remedy { fileChecksum.fail(trusted: mirrors.trusted) }

  /// Decides what follows a refusal, by `error`, or by `final` if there is no other URL.
  mutating func verdict(
    onRefusalOf asked: RemoteURL, by mirror: Int, _ error: TransferError, final: TransferError,
    isConfirmed: Bool
  ) -> SegmentVerdict {
    switch locations.recordRefusal(of: asked, by: mirror, now: .now) {
    case .expired: .expired(error)
    case .tooMany: .retry(error, after: nil)
    // A server that serves other requests and refuses this one has too many of them.
    case .final where isConfirmed && mirrors[mirror].flightCount > 1:
      .retry(error, after: nil)
    case .final: .fail(final)
    }
  }
}
