public import HTTPTransferCore

/// Carries out transfers: downloads, uploads and other requests.
///
/// Its transfers share connections, cookies and a rate limit. All methods may be called from any
/// thread and return at once.
public final class TransferClient: Sendable {
  public typealias Configuration = TransferClientConfiguration
  public typealias ClientCertificate = TransferClientConfiguration.ClientCertificate
  public typealias AddressFamily = TransferClientConfiguration.AddressFamily

  /// Carries out the exchanges of the transfers.
  package let exchanges: ExchangeClient
  let activeTransfers = ActiveTransfers()

  public init(configuration: Configuration = Configuration()) {
    exchanges = ExchangeClient(configuration: configuration)
  }

  public var configuration: Configuration { exchanges.configuration }

  /// Sets the limit of body bytes per second that all transfers together may receive and send from
  /// now on; nil for no limit.
  public func setRateLimit(_ bytesPerSecond: Int64?) { exchanges.setRateLimit(bytesPerSecond) }

  /// Sets the limits of current or future transfers; nil for no limit.
  ///
  /// The limit for all together, ``setRateLimit(_:)``, applies as well.
  public func setRateLimit(_ bytesPerSecond: Int64?, of limits: [RateLimit]) {
    exchanges.setRateLimit(bytesPerSecond, of: limits)
  }

  /// The limit for all transfers together, in bytes per second; nil for no limit.
  public var rateLimit: Int64? { exchanges.rateLimit }

  /// The number of transfers that have begun and not ended, for activity indicators.
  public var activeTransferCount: Int { activeTransfers.count }
}
