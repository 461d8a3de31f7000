internal import HTTPTransfer
internal import HTTPTransferCore

/// Keeps the requests for one file away from servers that are gone.
struct FileGate: HopGate {
  let servers: FileServers
  let outages: HostOutages
  let mirror: Int

  func permit(to url: RemoteURL, isRedirected: Bool) -> HopPermit {
    // Following the redirects again would lead there again.
    if !isRedirected, let end = servers.freshDeadEnd(of: url, mirror: mirror, now: .now),
      let refusal = outages.refusal(of: end)
    {
      return .refused(refusal)
    }
    return outages.permit(to: url, now: .now)
  }

  func refusal(of url: RemoteURL) -> ExchangeError? { outages.refusal(of: url) }

  func accepted(_ url: RemoteURL) { outages.accepted(url) }

  func answered(_ url: RemoteURL) {
    let isListed = url.origin == servers.url(ofMirror: mirror).origin
    outages.recordContact(with: url.origin, isListed: isListed)
  }
}
