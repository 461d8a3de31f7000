public import HTTPTransferCore
public import HTTPTypes

/// An event of a transfer.
public struct TransferEvent: Sendable {
  /// The event's place in its sequence: 0, 1, 2, … without a gap.
  public let number: Int

  public let kind: Kind

  /// The kind of an event.
  ///
  /// These sums hold however often a transfer was resumed, retried, redirected or restarted:
  /// - the byte counts of `resumed` and `received` add up to the bytes of the destination;
  /// - the total of `started` and the differences of `totalChanged` add up to its length (an
  ///   unknown total counts as 0);
  /// - the byte counts of `sent` add up to the bytes of the request's body.
  public enum Kind: Sendable {
    /// The transfer has started; the total is known if an earlier run or the range determines it.
    case started(totalByteCount: Int64?)
    /// The transfer follows a redirect.
    case redirected(to: RemoteURL, status: Int)
    /// The head of the decisive response: the first good one, or the one that fails the transfer.
    case responded(HTTPResponse, from: RemoteURL)
    /// This many bytes of an earlier run are present; negative if they turned out to be useless.
    case resumed(byteCount: Int64)
    /// This many more bytes have arrived; negative if they are fetched again.
    case received(byteCount: Int64)
    /// This many more bytes of the body were sent; negative if they must be sent again.
    case sent(byteCount: Int64)
    /// The total has become known or has changed.
    case totalChanged(by: Int64)
    /// A segment failed and is retried after the delay.
    case retrying(TransferError, attempt: Int, after: Duration)
    /// A mirror gets no more requests, for the given reason.
    case mirrorExcluded(RemoteURL, reason: String)
    /// The present bytes cannot be used; the transfer restarts at the first byte.
    case restarted(reason: String)
    /// The destination is complete.
    case finished(TransferResult)
    /// The transfer has ended without success.
    case failed(TransferError)
  }
}

/// The result of a successful transfer.
public struct TransferResult: Sendable {
  /// The head of the (first) final response.
  public let response: HTTPResponse

  /// The URL that the bytes came from, after redirects.
  public let url: RemoteURL

  /// The body if the destination is memory; empty otherwise.
  public let body: [UInt8]

  /// The bytes at the destination.
  public let byteCount: Int64

  /// How many of these bytes an earlier run had fetched.
  public let resumedByteCount: Int64

  /// Whether the result of an earlier transfer was kept, because the server still has that version;
  /// ``byteCount`` is then its length.
  public let isUnchanged: Bool

  /// The bytes of bodies that were transferred, before any decoding; more than ``byteCount`` if
  /// bytes were fetched twice or dropped.
  public let rawByteCount: Int64

  /// The time from start to end, including pauses.
  public let duration: Duration
}
