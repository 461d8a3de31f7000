package import HTTPTransferCore
package import HTTPTypes

/// Takes what one transfer brings.
///
/// Every method is called on the client's network thread, in the
/// order head, body pieces, finish, and must not block.
package protocol ExchangeReceiver: AnyObject, Sendable {
  /// The head of the final response (interim responses and followed redirects are not shown).
  ///
  /// - Parameters:
  ///   - head: status and fields as received, unchecked.
  ///   - url: where the response came from, after redirects.
  ///   - transfer: the transfer's name, as ``HTTPClient/start(_:receiver:)`` returns it.
  /// - Returns: what is to become of the body.
  func receive(
    head: HTTPResponse, from url: RemoteURL, transfer: ExchangeID
  ) -> ExchangeDisposition

  /// A piece of the body, at most 16 KiB, valid during the call only.
  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition

  /// A redirect is followed; does nothing unless implemented.
  ///
  /// - Parameters:
  ///   - url: where it leads.
  ///   - status: its status code.
  func redirected(to url: RemoteURL, status: Int)

  /// The request is held back because its origin has asked for no request before a moment; does
  /// nothing unless implemented.
  ///
  /// - Parameters:
  ///   - moment: when it will be sent; nil when it is being sent.
  ///   - transfer: the transfer's name, to cancel it by.
  func held(until moment: ContinuousClock.Instant?, transfer: ExchangeID)

  /// The request is being sent, over a connection that is there; does nothing unless implemented.
  ///
  /// Until then it may have waited for a connection to be made, or to be free.
  func requestSent()

  /// A rate limit holds the body back until its next piece; does nothing unless implemented.
  func throttled()

  /// The end; called exactly once for each started transfer, and last.
  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics)
}

extension ExchangeReceiver {
  package func redirected(to url: RemoteURL, status: Int) {}
  package func held(until moment: ContinuousClock.Instant?, transfer: ExchangeID) {}
  package func requestSent() {}
  package func throttled() {}
}

/// What is to become of the rest of a response.
package enum ExchangeDisposition: Sendable {
  /// Go on.
  case proceed
  /// Read and drop the body if it is short, so that the connection can be used again.
  case discard
  /// The piece was not taken: stop reading until ``HTTPClient/unpause(_:)``, then offer it again.
  case pause
  /// End the transfer now; its connection is closed.
  case stop
}

/// How a transfer ended.
package enum ExchangeCompletion: Sendable {
  /// The response arrived whole.
  case finished
  /// The receiver said ``ExchangeDisposition/stop``.
  case stopped
  /// ``HTTPClient/cancel(_:)`` was called.
  case cancelled
  case failed(ExchangeError)
}

/// What a transfer cost.
package struct ExchangeMetrics: Sendable {
  /// The time from the request's start to the first byte of the final response's head.
  package var timeToFirstByte: Duration = .zero

  /// How many connections were opened for it, redirects included; 0 when all were reused.
  package var newConnections: Int = 0

  /// How many requests were sent for it: 1 + the redirects followed.
  package var requests: Int = 1

  /// The bytes of the final response's body as they travelled, before any decoding.
  package var rawByteCount: Int64 = 0

  /// The value before anything was measured.
  package init() {}
}
