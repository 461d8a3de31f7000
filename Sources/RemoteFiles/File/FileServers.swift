internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import Synchronization

/// The servers of a file: which URL is asked for its bytes as URLs expire and lists are reread, and
/// what the answers show about each server.
///
/// Lock order: `state` is a leaf.
final class FileServers: Sendable {
  /// The servers, if the list says more about the file than a URL.
  let mirrors: SharedMirrors?
  /// The limit on the bytes per second of all requests.
  let rateLimit: RateLimit

  private struct State {
    var source: FileSource
    /// Decide which URL of each server is asked.
    ///
    /// The signer makes those of the first.
    var locations: [ResourceLocation]
    /// Whether the signer is running for this file.
    var isSigning = false
    /// Where redirects from the URLs of servers have last led, if that could not be reached.
    var deadEnds: [Int: DeadEnd] = [:]
  }

  private struct DeadEnd {
    let url: RemoteURL
    let foundAt: ContinuousClock.Instant
  }

  private let settings: FileSettings
  private let logger: Logger
  private let state: Mutex<State>

  init(source: FileSource, settings: FileSettings, logger: Logger, rateLimit: RateLimit) {
    self.settings = settings
    self.logger = logger
    self.rateLimit = rateLimit
    let isSigned = settings.signer != nil
    mirrors = source.details.flatMap { details in
      guard details.describesContent else { return nil }
      return SharedMirrors(url: source.url, details: details, isSigned: isSigned)
    }
    state = Mutex(
      State(source: source, locations: Self.locations(of: source, mirrors, isSigned: isSigned)))
  }

  private static func locations(
    of source: FileSource, _ mirrors: SharedMirrors?, isSigned: Bool
  ) -> [ResourceLocation] {
    let others = mirrors?.snapshot.mirrors.dropFirst() ?? []
    return [ResourceLocation(listed: source.url, isSigned: isSigned)]
      + others.map { ResourceLocation(listed: $0.url) }
  }

  /// The current source of the file.
  var source: FileSource { state.withLock { $0.source } }

  /// Adopts another URL of the same file, or other credentials, from a list that was reread.
  ///
  /// - Returns: the previous source.
  func adopt(_ source: FileSource) -> FileSource {
    // The mirrors have a lock of their own.
    let locations = Self.locations(of: source, mirrors, isSigned: settings.signer != nil)
    return state.withLock { state in
      defer {
        state.source = source
        state.locations = locations
        state.deadEnds = [:]
      }
      return state.source
    }
  }

  // MARK: Requests

  /// A request for `range` of the file, or for all of it, at `url`, which leads to its server
  /// `mirror`.
  func request(range: ByteRange?, at url: RemoteURL, mirror: Int = 0) -> ExchangeRequest {
    let listed = self.url(ofMirror: mirror)
    var connectTimeout = settings.connectTimeout
    if let mirrors, mirrors.count > 1 {
      connectTimeout = mirrors.timeout(connectTimeout, with: mirror, now: .now)
    }
    var request = ExchangeRequest(
      url: url, range: range, confidentialFields: source.fields,
      confidentialOrigin: listed.origin, connectTimeout: connectTimeout)
    request.userInfo = listed.userInfo
    request.rateLimit = rateLimit
    guard url != listed else { return request }
    let base = base(ofMirror: mirror)
    request.namedOrigin = base?.origin
    if url == base { request.useOwnCredentials() }
    return request
  }

  /// The URL of the server `mirror` as listed.
  func url(ofMirror mirror: Int) -> RemoteURL {
    mirror == 0 ? source.url : mirrors?.url(mirror) ?? source.url
  }

  /// The origin whose slots the requests to the server `mirror` take.
  func placeOrigin(ofMirror mirror: Int) -> String {
    (base(ofMirror: mirror) ?? url(ofMirror: mirror)).origin
  }

  /// The origins of the file's servers, as listed.
  var origins: [String] {
    ([source.url] + (mirrors?.details.mirrors ?? [])).map(\.normalizedOrigin)
  }

  /// The URL at which the redirects of a server begin; nil if the signer must make one first.
  func base(ofMirror mirror: Int) -> RemoteURL? { state.withLock { $0.locations[mirror].base } }

  /// Whether the signer makes the URLs for the requests.
  var isSigned: Bool { state.withLock { $0.locations[0].isSigned } }

  /// Whether the location of the bytes at the first server is known.
  ///
  /// If the listed URL itself did not redirect, it counts as unknown, and the URL is asked once
  /// more.
  var isLocated: Bool {
    state.withLock {
      $0.locations[0].redirected != nil
        || ($0.locations[0].isSigned && $0.locations[0].base != nil)
    }
  }

  /// The URL to request bytes from now.
  ///
  /// The URL is nil if the signer must make one first; `signs` tells the caller to start the
  /// signer. If the last URL expires soon, one caller gets the URL at which the redirects begin,
  /// and the signer runs while the others continue.
  func takePlace(atMirror mirror: Int) -> (url: RemoteURL?, signs: Bool) {
    let now = ContinuousClock.now
    return state.withLock { state in
      let signs = state.locations[mirror].takeSignerTurn(now: now)
      let followsAgain = state.locations[mirror].takeTargetRenewal(now: now)
      return (followsAgain ? state.locations[mirror].base : state.locations[mirror].current, signs)
    }
  }

  /// How long a response of the server `mirror` may stall before it is abandoned.
  func responseTimeout(with mirror: Int, now: ContinuousClock.Instant) -> Duration {
    let timeout = settings.responseTimeout
    return mirrors?.timeout(timeout, with: mirror, now: now) ?? timeout
  }

  // MARK: URL signing

  /// Begins a run of the signer.
  ///
  /// - Returns: false if one is under way.
  func beginSigning() -> Bool {
    state.withLock { state in
      defer { state.isSigning = true }
      return !state.isSigning
    }
  }

  /// Ends the run of the signer for the URL `listed`.
  ///
  /// - Returns: false if the list has another URL by now.
  func endSigning(of listed: RemoteURL, _ result: Result<RemoteURL, URLSigningError>) -> Bool {
    let sinceEpoch = timeSinceEpoch()
    return state.withLock { state in
      state.isSigning = false
      guard state.locations[0].listed == listed else { return false }
      if case .success(let url) = result {
        state.deadEnds[0] = nil
        state.locations[0].recordSigned(url, now: .now, sinceEpoch: sinceEpoch)
      }
      return true
    }
  }

  // MARK: Response classification

  /// Records a valid answer from `url` to a request that was sent to `asked`.
  func recordAnswer(from url: RemoteURL, asked: RemoteURL, mirror: Int) {
    let sinceEpoch = timeSinceEpoch()
    state.withLock {
      $0.locations[mirror].recordAnswer(from: url, asked: asked, now: .now, sinceEpoch: sinceEpoch)
    }
  }

  /// Records the refusal of a request for bytes that was sent to `asked` of the server `mirror`.
  func recordRefusal(of asked: RemoteURL, mirror: Int) -> ResourceLocation.Refusal {
    state.withLock { $0.locations[mirror].recordRefusal(of: asked, now: .now) }
  }

  /// Records that no server answered the request to `asked`, that it cannot serve now, or that its
  /// answer is of no use for the file.
  ///
  /// - Returns: whether the next request to the server `mirror` goes to another URL.
  func recordFailure(of asked: RemoteURL, mirror: Int) -> Bool {
    state.withLock { $0.locations[mirror].recordFailure(of: asked, now: .now) }
  }

  /// Where redirects from the URL of the server `mirror` have last led, if that could not be
  /// reached.
  func deadEnd(ofMirror mirror: Int) -> RemoteURL? { state.withLock { $0.deadEnds[mirror]?.url } }

  func setDeadEnd(_ url: RemoteURL?, ofMirror mirror: Int) {
    state.withLock { state in
      if url == nil, state.deadEnds[mirror] == nil { return }
      state.deadEnds[mirror] = url.map { DeadEnd(url: $0, foundAt: .now) }
    }
  }

  /// The same if `url` is where those redirects begin, and was asked a moment ago.
  func freshDeadEnd(
    of url: RemoteURL, mirror: Int, now: ContinuousClock.Instant
  ) -> RemoteURL? {
    state.withLock { state in
      guard let end = state.deadEnds[mirror], now - end.foundAt < HostOutages.probeInterval,
        url == state.locations[mirror].base
      else { return nil }
      return end.url
    }
  }

  /// Records that the server `mirror` has fallen silent in answers.
  func recordSilence(ofMirror mirror: Int) {
    state.withLock { state in
      guard let url = state.locations[mirror].current else { return }
      _ = state.locations[mirror].recordFailure(of: url, now: .now)
    }
  }

  /// What a permanent refusal by the server `mirror` means.
  func refusal(_ verdict: ResponseVerdict, mirror: Int) -> FileError {
    let error = FileError(verdict)
    guard settings.signer == nil, error.code == .denied || error.code == .missing,
      let expiry = url(ofMirror: mirror).signatureExpiry, expiry <= Int64(time(nil))
    else { return error }
    return error.ofExpiredSignature
  }

  /// Whether a server other than `index` can define what the file is.
  func isOneOfSeveral(_ index: Int) -> Bool {
    guard let mirrors, mirrors.count > 1 else { return false }
    let snapshot = mirrors.snapshot
    return snapshot.trust == .hashesBeforeUse || snapshot.reference != index
  }

  /// Excludes the server `index` of the file, because it has other bytes than the wanted ones, and
  /// logs that.
  func refuseMirror(_ index: Int, _ reason: String) {
    guard let mirrors, mirrors.change({ $0.refuse(index, reason: reason) }) else { return }
    logger.warning(
      "not asked again for the file",
      metadata: [
        "file": "\(source.path)", "url": "\(mirrors.url(index).redacted)", "reason": "\(reason)",
      ])
  }

  /// Whether `content`, which the server `index` has described, is the version `pinned`; notes what
  /// follows for the server.
  func isSame(_ content: ContentVersion, from index: Int, as pinned: ContentVersion) -> Bool {
    if let mirrors {
      switch mirrors.change({ $0.judge(content, from: index, pinned: pinned, now: .now) }) {
      case .same, .unproven, .declined: return true
      case .contradicts: return false
      case .ordinary: break
      }
    }
    return pinned.compare(content) == .same
  }
}
