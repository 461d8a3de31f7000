internal import HTTPTransferCore
internal import HTTPTypes

/// Decides which server each request of a transfer goes to, and whose bytes are trusted.
///
/// A value without I/O.
struct TransferServers: Sendable {
  /// What is known of each server.
  var mirrors: MirrorSet
  /// Which URL of each server is asked.
  var locations: TransferLocations
  /// Which servers have brought the bytes that are present.
  private var wholeCheck = WholeCheck()

  init(_ request: Request, trust: MirrorSet.Trust) {
    let isSigned = request.signer != nil && request.method == .get
    // The signer makes URLs of the first server.
    let others = request.method == .get && !isSigned ? request.mirrors : []
    mirrors = MirrorSet(urls: [request.url] + others, trust: trust, rests: request.retryPolicy)
    locations = TransferLocations(servers: mirrors.mirrors.map(\.url), isSigned: isSigned)
  }

  /// The URL that a server is asked at now.
  func url(of mirror: Int) -> RemoteURL { locations[mirror].current ?? mirrors[mirror].url }

  // MARK: Choice

  /// The mirror that the request for a segment goes to; the first if none is left.
  func next(for segment: SegmentTable.Segment, of representation: Representation) -> Int {
    // A piece that has to come from one mirror stays with it for as long as that can be asked.
    if segment.suspectPiece != nil, let mirror = segment.mirror, !mirrors[mirror].isRefused {
      return mirror
    }
    let others =
      segment.excludedMirrors.isEmpty
      ? nil : next(of: representation, except: segment.excludedMirrors)
    return others ?? next(of: representation) ?? 0
  }

  /// The mirror that a request goes to; nil if none is left.
  func next(of representation: Representation, except excluded: Set<Int> = []) -> Int? {
    guard mirrors.count > 1 else { return 0 }
    // A download can wait until it can be asked, which a reader would not.
    if let sole = mirrors.sole { return sole }
    return representation.canSpread(mirrors.trust)
      ? mirrors.choose(isUrgent: false, except: excluded, now: .now)
      : mirrors.contact(except: excluded, now: .now)
  }

  // MARK: What becomes known

  /// An earlier run has stored bytes of unknown servers.
  mutating func noteEarlierBytes() { wholeCheck.hasEarlierBytes = true }

  /// Bytes of a server have been stored; its connection brings `rate` bytes per second, if known.
  mutating func noteStored(from mirror: Int, rate: Double?) {
    guard mirrors.count > 1 else { return }
    wholeCheck.noteStored(from: mirror)
    mirrors.answered(mirror)
    mirrors.measured(mirror, bytesPerSecond: rate)
  }

  /// Everything starts over.
  mutating func forget() {
    mirrors.forgetVersion()
    wholeCheck.forgetBytes()
  }

  /// What follows from a whole that does not hash to the checksum.
  mutating func judgeWhole() -> WholeCheck.Remedy { wholeCheck.fail(trusted: mirrors.trusted) }

  /// What follows from a refusal by `error`, or by `final` if there is no other URL.
  mutating func verdict(
    onRefusalOf asked: RemoteURL, by mirror: Int, _ error: TransferError, final: TransferError,
    isConfirmed: Bool
  ) -> SegmentVerdict {
    switch locations.noteRefusal(of: asked, by: mirror, now: .now) {
    case .expired: .expired(error)
    case .tooMany: .retry(error, after: nil)
    // A server that has served others and refuses this one finds them too many.
    case .final where isConfirmed && mirrors[mirror].flightCount > 1:
      .retry(error, after: nil)
    case .final: .fail(final)
    }
  }
}
