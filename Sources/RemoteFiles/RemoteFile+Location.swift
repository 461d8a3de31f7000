internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// Which URL a file's bytes are asked for at, while URLs expire and lists are read again.
extension RemoteFile {
  // MARK: Requests

  /// A request for `range` of the file, or for the whole of it, at `url`, which leads to its server
  /// `mirror`.
  func request(range: ByteRange?, at url: RemoteURL, mirror: Int = 0) -> ExchangeRequest {
    let listed = self.url(ofMirror: mirror)
    var connectTimeout = environment.settings.connectTimeout
    if let mirrors, mirrors.count > 1 {
      connectTimeout = mirrors.patience(connectTimeout, with: mirror, now: .now)
    }
    var request = ExchangeRequest(
      url: url, range: range, confidentialFields: source.fields,
      confidentialOrigin: listed.origin, connectTimeout: connectTimeout)
    request.userInfo = listed.userInfo
    request.rateLimit = rateLimit
    guard mirror == 0, url != listed else { return request }
    let base = state.withLock { $0.location.base }
    request.namedOrigin = base?.origin
    if url == base { request.useOwnCredentials() }
    return request
  }

  /// The URL of the server `mirror` as listed.
  func url(ofMirror mirror: Int) -> RemoteURL {
    mirror == 0 ? source.url : mirrors?.url(mirror) ?? source.url
  }

  /// The origins of its servers, as listed.
  var origins: [String] {
    ([source.url] + (mirrors?.details.mirrors ?? [])).map(\.normalizedOrigin)
  }

  /// Where bytes are asked for now; nil where the signer is to make a URL first.
  ///
  /// Where the last URL expires soon, one caller is sent to where the redirects begin, and the signer is
  /// asked while the others go on. Of other servers than the first too little is asked to save a redirect.
  func place(atMirror mirror: Int) -> RemoteURL? {
    guard mirror == 0 else { return url(ofMirror: mirror) }
    let now = ContinuousClock.now
    let (url, signs) = state.withLock { state -> (RemoteURL?, Bool) in
      let signs = state.location.takeSignerTurn(now: now)
      let followsAgain = state.location.takeTargetRenewal(now: now)
      return (followsAgain ? state.location.base : state.location.current, signs)
    }
    if signs { sign() }
    return url
  }

  // MARK: What answers say

  /// A request that was sent to `asked` was answered from `url`, with what it asked for.
  func noteAnswer(from url: RemoteURL, asked: RemoteURL, mirror: Int) {
    guard mirror == 0 else { return }
    let sinceEpoch = timeSinceEpoch()
    state.withLock {
      $0.location.noteAnswer(from: url, asked: asked, now: .now, sinceEpoch: sinceEpoch)
    }
  }

  /// A request for bytes that was sent to `asked` was refused.
  func noteRefusal(of asked: RemoteURL) -> ResourceLocation.Refusal {
    state.withLock { $0.location.noteRefusal(of: asked, now: .now) }
  }

  /// What a refusal for good by the server `mirror` means.
  func refusal(_ verdict: ResponseVerdict, mirror: Int) -> FileError {
    let error = FileError(verdict)
    guard environment.settings.signer == nil, error.code == .denied || error.code == .missing,
      let expiry = url(ofMirror: mirror).signatureExpiry, expiry <= Int64(time(nil))
    else { return error }
    return FileError(error.code, error.reason + ": the signature of the listed URL has expired")
  }

  /// Finds out where the bytes are now, unless that has been learned meanwhile; `done` gets the
  /// failure, if there is one.
  func renewLocation(_ done: @escaping @Sendable (FileError?) -> Void) {
    // The listed URL itself may have led nowhere else: then it is asked once more.
    let isKnown = state.withLock {
      $0.location.redirected != nil || ($0.location.isSigned && $0.location.base != nil)
    }
    if isKnown { return done(nil) }
    joinProbe { result in
      switch result {
      case .success: done(nil)
      case .failure(let error): done(error)
      }
    }
  }

  // MARK: The signer

  /// Has a URL made, by one run of the signer at a time.
  func sign() {
    guard let signer = environment.settings.signer else { return }
    let source = source
    let mayStart = state.withLock { state in
      defer { state.isSigning = true }
      return !state.isSigning
    }
    guard mayStart else { return }
    signer.sign(source.url, name: source.path) { [self] result in
      environment.client.perform { [self] in finishSigning(of: source.url, result) }
    }
  }

  private func finishSigning(
    of listed: RemoteURL, _ result: Result<RemoteURL, URLSigningError>
  ) {
    let sinceEpoch = timeSinceEpoch()
    let isOfNow = state.withLock { state in
      state.isSigning = false
      // The list may have another URL by now.
      guard state.location.listed == listed else { return false }
      if case .success(let url) = result {
        state.location.noteSigned(url, now: .now, sinceEpoch: sinceEpoch)
      }
      return true
    }
    var failure: FileError?
    if isOfNow, case .failure(let error) = result {
      failure = FileError(.unsigned, error.description)
    }
    let isAwaited = signerAnswered(failure)
    // The last URL is used until it refuses.
    if let failure, !isAwaited { noteFailure(failure, isRetried: true) }
  }

  // MARK: Another list

  /// The list names another URL of the same file now, or other credentials: open handles and cached
  /// bytes go on with that.
  public func adopt(_ source: FileSource) {
    let limitBefore = self.source.details?.rateLimit
    sourceState.withLock { $0 = source }
    // One that was set since stays while the list says the same as before.
    if source.details?.rateLimit != limitBefore {
      environment.client.setRateLimit(environment.listedRateLimit(of: source), of: [rateLimit])
    }
    state.withLock {
      $0.location = ResourceLocation(
        listed: source.url, isSigned: environment.settings.signer != nil)
      $0.recentFailure = nil
    }
  }
}
