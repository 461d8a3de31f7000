internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// Where the file's bytes are requested, and what must be asked of the server or of the signer
/// first.
extension RemoteFile {
  func place(atMirror mirror: Int) -> RemoteURL? {
    let (url, signs) = context.servers.takePlace(atMirror: mirror)
    if signs { prober.sign() }
    return url
  }

  func renewLocation(_ done: @escaping @Sendable (FileError?) -> Void) {
    if context.servers.isLocated { return done(nil) }
    prober.join { result in
      switch result {
      case .success: done(nil)
      case .failure(let error): done(error)
      }
    }
  }

  /// Adopts another URL of the same file, or other credentials, from a reread list; open handles
  /// and cached bytes stay in use.
  package func adopt(_ source: FileSource) {
    let before = context.servers.adopt(source)
    // A rate limit that was set since stays if the list says the same as before.
    if source.details?.rateLimit != before.details?.rateLimit {
      environment.client.setRateLimit(environment.listedRateLimit(of: source), of: [rateLimit])
    }
    state.withLock { $0.recentFailure = nil }
  }
}
