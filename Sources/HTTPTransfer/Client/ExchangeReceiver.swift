package import HTTPTransferCore
package import HTTPTypes

/// Receives the response of one exchange.
///
/// Every method is called on the client's network thread, in the order head, body pieces, finish,
/// and must not block.
package protocol ExchangeReceiver: AnyObject, Sendable {
  /// The head of the final response (not of interim responses and followed redirects).
  ///
  /// - Parameters:
  ///   - head: status and fields as received, unchecked.
  ///   - url: the source of the response, after redirects.
  ///   - exchange: the exchange's ID, as ``ExchangeClient/start(_:receiver:)`` returns it.
  /// - Returns: what to do with the body.
  func receive(
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition

  /// A piece of the body, at most 16 KiB, valid during the call only.
  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition

  /// Called when a redirect is followed; does nothing by default.
  ///
  /// - Parameters:
  ///   - url: its target.
  ///   - status: its status code.
  func redirected(to url: RemoteURL, status: Int)

  /// Called when the request is deferred, because its origin has asked to delay requests; does
  /// nothing by default.
  ///
  /// - Parameters:
  ///   - moment: when it will be sent; nil when it is being sent.
  ///   - exchange: the exchange's ID, for cancelling it.
  func held(until moment: ContinuousClock.Instant?, exchange: ExchangeID)

  /// Called when the exchange has a slot and needs a connection; does nothing by default.
  ///
  /// Each hop calls it.
  func connecting()

  /// Called when the request is being sent over an established connection; does nothing by default.
  ///
  /// Before that, it may have waited for a slot, and for a connection.
  func requestSent()

  /// Called when a rate limit delays the body until its next piece; does nothing by default.
  func throttled()

  /// The end; called exactly once for each started exchange, as the last call.
  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics)
}

extension ExchangeReceiver {
  package func redirected(to url: RemoteURL, status: Int) {}
  package func held(until moment: ContinuousClock.Instant?, exchange: ExchangeID) {}
  package func connecting() {}
  package func requestSent() {}
  package func throttled() {}
}

/// What to do with the rest of a response.
package enum ExchangeDisposition: Sendable {
  /// Continue.
  case proceed
  /// Read and drop the body if it is short, so that the connection can be reused.
  case discard
  /// The piece was not taken: stop reading until ``ExchangeClient/unpause(_:)``, then offer it
  /// again.
  case pause
  /// End the exchange now; its connection is closed.
  case stop
}

/// How an exchange ended.
package enum ExchangeCompletion: Sendable {
  /// The response is complete.
  case finished
  /// The receiver returned ``ExchangeDisposition/stop``.
  case stopped
  /// ``ExchangeClient/cancel(_:)`` was called.
  case cancelled
  case failed(ExchangeError)
}

/// The metrics of an exchange.
package struct ExchangeMetrics: Sendable {
  /// The time from the request's start to the first byte of the final response's head.
  package var timeToFirstByte: Duration = .zero

  /// How many connections were opened for it, including those for redirects; 0 if all were reused.
  package var newConnections: Int = 0

  /// How many requests were sent for it: 1 + the redirects followed.
  package var requests: Int = 1

  /// The received bytes of the final response's body, before decoding.
  package var rawByteCount: Int64 = 0

  /// Whether the final response came over HTTP/2, where a cut body is an error of its own.
  package var isMultiplexed = false

  /// The value before any measurement.
  package init() {}
}
