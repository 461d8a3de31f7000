/// The body of a request, read while it is sent; used on the network thread only.
package protocol ExchangeBody: AnyObject, Sendable {
  /// The number of bytes; nil where only the end will tell, which sends them in chunks.
  var byteCount: Int64? { get }

  /// Fills the start of `buffer` with the next bytes.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> ExchangeBodyRead

  /// Begins anew at the first byte: before the first send, after a redirect that keeps the body,
  /// and where the server wants credentials first.
  ///
  /// - Returns: false where that cannot be done.
  func rewind() -> Bool
}

/// What reading a request's body gave.
package enum ExchangeBodyRead {
  /// So many bytes; 0 at the end.
  case bytes(Int)
  /// Nothing now: go on after ``HTTPClient/unpause(_:)``.
  case pause
  /// The body cannot be sent; the exchange fails with ``ExchangeError/Code/unreadableBody``.
  case failed
}
