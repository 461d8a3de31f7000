/// The body of a request, read while it is sent; used only on the network thread.
package protocol ExchangeBody: AnyObject, Sendable {
  /// The number of bytes; nil if it is unknown before the end, which requires chunks.
  var byteCount: Int64? { get }

  /// Fills the start of `buffer` with the next bytes.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> ExchangeBodyRead

  /// Starts again at the first byte: before the first send, after a redirect that keeps the body,
  /// and if the server first requires credentials.
  ///
  /// - Returns: false if that is impossible.
  func rewind() -> Bool
}

/// The result of reading a request's body.
package enum ExchangeBodyRead {
  /// This many bytes; 0 at the end.
  case bytes(Int)
  /// Nothing now: continue after ``ExchangeClient/unpause(_:)``.
  case pause
  /// The body cannot be sent; the exchange fails with ``ExchangeError/Code/unreadableBody``.
  case failed
}
