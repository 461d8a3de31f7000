package import HTTPTransferCore

/// Decides whether an exchange may connect to the server of a hop.
package protocol HopGate: Sendable {
  /// Called on the network thread, before an exchange takes a slot and before it follows a redirect
  /// to another origin; it must not block.
  ///
  /// - Parameters:
  ///   - url: the URL of the hop.
  ///   - isRedirected: whether a redirect leads there; false for the request itself.
  /// - Returns: whether to connect.
  func permit(to url: RemoteURL, isRedirected: Bool) -> HopPermit

  /// Why no connection to the server of `url` will help; nil if one may.
  ///
  /// Called on the network thread, again and again, while an exchange connects; it must not block.
  func refusal(of url: RemoteURL) -> ExchangeError?

  /// Called on the network thread when the server of `url` has accepted a connection; perhaps it
  /// will not answer. It must not block.
  func accepted(_ url: RemoteURL)

  /// Called on the network thread when the server of `url` has answered, also with a redirect; it
  /// must not block.
  func answered(_ url: RemoteURL)
}

/// The answer of a ``HopGate``.
package enum HopPermit: Sendable {
  case granted
  /// Granted to look for the return of a server: a connection may take no longer than
  /// ``probeTimeout``, because a read waits for it.
  case probe
  /// The exchange fails with this error, without a connection.
  case refused(ExchangeError)

  package static let probeTimeout = Duration.seconds(1)
}
