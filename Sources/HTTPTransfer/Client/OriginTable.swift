internal import HTTPTransferCore

/// What a client has learned of the origins that it has talked to.
struct OriginTable {
  /// Who has asked for no request for a while.
  var gate = HostGate()

  /// The origins that have been reached at a public address: what they redirect to, and is then asked
  /// directly, is still not to be private.
  private var publicOrigins: Set<String> = []

  /// More origins than a mount or a queue talks to; beyond it every origin counts as public, which is
  /// the safe side.
  private static let limit = 16_384

  /// No host name is longer; a proxy may accept one all the same, which then counts as public.
  private static let lengthLimit = 512

  /// A request goes to `origin` at a public address.
  mutating func notePublicAddress(of origin: String) {
    guard publicOrigins.count < Self.limit, origin.utf8.count <= Self.lengthLimit else { return }
    publicOrigins.insert(origin)
  }

  private func isPublic(_ origin: String) -> Bool {
    publicOrigins.count >= Self.limit || origin.utf8.count > Self.lengthLimit
      || publicOrigins.contains(origin)
  }

  /// The guard of an exchange that is about to start.
  ///
  /// A URL of another origin than the user's is one that a redirect has named before.
  func addressGuard(for request: ExchangeRequest) -> AddressGuard {
    let origin = request.url.normalizedOrigin
    let named = request.namedOrigin ?? request.confidentialOrigin
    let source = (try? RemoteURL(named))?.normalizedOrigin ?? origin
    return AddressGuard(
      isRedirected: origin != source, cameFromPublicAddress: isPublic(source) || isPublic(origin))
  }
}
