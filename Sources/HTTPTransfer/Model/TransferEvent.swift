public import HTTPTransferCore
public import HTTPTypes

/// Something that happened to a transfer.
public struct TransferEvent: Sendable {
  /// The event's place in its sequence: 0, 1, 2, … without a gap.
  public let number: Int

  public let kind: Kind

  /// What happened.
  ///
  /// The sums hold however often a transfer was resumed, retried, redirected or begun anew:
  /// - the byte counts of `resumed` and `received` add up to the bytes of the destination;
  /// - the total of `started` and the differences of `totalChanged` add up to its length (an unknown
  ///   total counts as 0);
  /// - the byte counts of `sent` add up to the bytes of the request's body.
  public enum Kind: Sendable {
    /// The transfer has begun; the total where it is known from an earlier run or from the range.
    case started(totalByteCount: Int64?)
    /// A redirect is followed.
    case redirected(to: RemoteURL, status: Int)
    /// The head of the response that decides: the first good one, or the one that is the failure.
    case responded(HTTPResponse, from: RemoteURL)
    /// So many bytes are there from an earlier run; negative where they turned out useless.
    case resumed(byteCount: Int64)
    /// So many bytes more have arrived; negative where they are fetched again.
    case received(byteCount: Int64)
    /// So many bytes more of the body were sent; negative where they must be sent again.
    case sent(byteCount: Int64)
    /// The total has become known or is another one.
    case totalChanged(by: Int64)
    /// A segment has failed and is tried again after the delay.
    case retrying(TransferError, attempt: Int, after: Duration)
    /// A mirror is not asked any more, for the reason given.
    case mirrorExcluded(RemoteURL, reason: String)
    /// What was there cannot be gone on with; the transfer begins at the first byte.
    case restarted(reason: String)
    /// The destination is complete.
    case finished(TransferResult)
    /// The transfer has ended without success.
    case failed(TransferError)
  }
}

/// What a successful transfer brought.
public struct TransferResult: Sendable {
  /// The head of the (first) final response.
  public let response: HTTPResponse

  /// Where it came from, after redirects.
  public let url: RemoteURL

  /// The body, where the destination is memory; empty otherwise.
  public let body: [UInt8]

  /// The bytes at the destination.
  public let byteCount: Int64

  /// Those of them that an earlier run had brought.
  public let resumedByteCount: Int64

  /// Whether the file that an earlier transfer has finished was left as it is, since the server still
  /// has that version; ``byteCount`` then is its length.
  public let isUnchanged: Bool

  /// The bytes of bodies that have travelled, before any decoding; more than ``byteCount`` where
  /// something was fetched twice or thrown away.
  public let rawByteCount: Int64

  /// The time from start to end, pauses included.
  public let duration: Duration
}
