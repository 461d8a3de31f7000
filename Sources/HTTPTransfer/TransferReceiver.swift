public import HTTPTransferCore
public import HTTPTypes

/// Takes what one transfer brings.
///
/// Every method is called on the client's network thread, in the
/// order head, body pieces, finish, and must not block.
public protocol TransferReceiver: AnyObject, Sendable {
  /// The head of the final response (interim responses and followed redirects are not shown).
  ///
  /// - Parameters:
  ///   - head: status and fields as received, unchecked.
  ///   - url: where the response came from, after redirects.
  ///   - transfer: the transfer's name, as ``HTTPClient/start(_:receiver:)`` returns it.
  /// - Returns: what is to become of the body.
  func receive(
    head: HTTPResponse, from url: RemoteURL, transfer: TransferID
  ) -> TransferDisposition

  /// A piece of the body, at most 16 KiB, valid during the call only.
  func receive(body: UnsafeRawBufferPointer) -> TransferDisposition

  /// The end; called exactly once for each started transfer, and last.
  func finish(_ completion: TransferCompletion, metrics: TransferMetrics)
}

/// What is to become of the rest of a response.
public enum TransferDisposition: Sendable {
  /// Go on.
  case proceed
  /// Read and drop the body if it is short, so that the connection can be used again.
  case discard
  /// End the transfer now; its connection is closed.
  case stop
}

/// How a transfer ended.
public enum TransferCompletion: Sendable {
  /// The response arrived whole.
  case finished
  /// The receiver said ``TransferDisposition/stop``.
  case stopped
  /// ``HTTPClient/cancel(_:)`` was called.
  case cancelled
  case failed(TransferError)
}

/// What a transfer cost.
public struct TransferMetrics: Sendable {
  /// The time from the request's start to the first byte of the final response's head.
  public var timeToFirstByte: Duration = .zero

  /// How many connections were opened for it, redirects included; 0 when all were reused.
  public var newConnections: Int = 0

  /// How many requests were sent for it: 1 + the redirects followed.
  public var requests: Int = 1

  /// The value before anything was measured.
  public init() {}
}
