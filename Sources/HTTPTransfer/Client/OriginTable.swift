internal import HTTPTransferCore

/// What a client has learned about origins.
struct OriginTable {
  /// The origins that have asked to delay requests.
  var gate = RetryAfterGate()

  /// The numbers of connections that were worthwhile for downloads.
  var connections = HostMemory()

  /// The origins that have exchanges in progress.
  var uses = OriginUses()

  /// The origins that were reached at a public address.
  ///
  /// Their redirects must not lead to private addresses, even if the target is later requested
  /// directly.
  private var publicOrigins: Set<String> = []

  /// More origins than a mount or a queue uses.
  ///
  /// Beyond this number every origin counts as public, which is safe.
  private static let limit = 16_384

  /// No host name is longer.
  ///
  /// A proxy may still accept a longer one, which then counts as public.
  private static let lengthLimit = 512

  /// Records that a request goes to `origin` at a public address.
  mutating func recordPublicAddress(of origin: String) {
    guard publicOrigins.count < Self.limit, origin.utf8.count <= Self.lengthLimit else { return }
    publicOrigins.insert(origin)
  }

  private func isPublic(_ origin: String) -> Bool {
    publicOrigins.count >= Self.limit || origin.utf8.count > Self.lengthLimit
      || publicOrigins.contains(origin)
  }

  /// The guard of an exchange that is about to start.
  ///
  /// If the URL has another origin than the user's, an earlier redirect has named it.
  func addressGuard(for request: ExchangeRequest) -> AddressGuard {
    let origin = request.url.normalizedOrigin
    let named = request.namedOrigin ?? request.confidentialOrigin
    let source = (try? RemoteURL(named))?.normalizedOrigin ?? origin
    return AddressGuard(
      isRedirected: origin != source, cameFromPublicAddress: isPublic(source) || isPublic(origin))
  }
}
