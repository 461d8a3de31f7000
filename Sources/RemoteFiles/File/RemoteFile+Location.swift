internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// Where the file's bytes are asked for: what must be asked of the server or of the signer first.
extension RemoteFile {
  func place(atMirror mirror: Int) -> RemoteURL? {
    let (url, signs) = context.servers.takePlace(atMirror: mirror)
    if signs { sign() }
    return url
  }

  func renewLocation(_ done: @escaping @Sendable (FileError?) -> Void) {
    if context.servers.isLocated { return done(nil) }
    joinProbe { result in
      switch result {
      case .success: done(nil)
      case .failure(let error): done(error)
      }
    }
  }

  /// Has a URL made, by one run of the signer at a time.
  func sign() {
    guard let signer = environment.settings.signer else { return }
    let source = source
    guard context.servers.beginSigning() else { return }
    signer.sign(source.url, name: source.path) { [self] result in
      environment.client.perform { [self] in finishSigning(of: source.url, result) }
    }
  }

  private func finishSigning(
    of listed: RemoteURL, _ result: Result<RemoteURL, URLSigningError>
  ) {
    var failure: FileError?
    // The list may have another URL by now.
    if context.servers.endSigning(of: listed, result), case .failure(let error) = result {
      failure = FileError(.unsigned, error.description)
    }
    let isAwaited = signerAnswered(failure)
    // The last URL is used until it refuses.
    if let failure, !isAwaited { noteFailure(failure, isRetried: true) }
  }

  /// The list names another URL of the same file now, or other credentials: open handles and cached
  /// bytes continue with that.
  public func adopt(_ source: FileSource) {
    let before = context.servers.adopt(source)
    // One that was set since stays while the list says the same as before.
    if source.details?.rateLimit != before.details?.rateLimit {
      environment.client.setRateLimit(environment.listedRateLimit(of: source), of: [rateLimit])
    }
    state.withLock { $0.recentFailure = nil }
  }
}
