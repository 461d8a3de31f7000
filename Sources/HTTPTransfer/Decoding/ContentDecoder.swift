/// Decodes one content coding of one body, in steps that the size of the output bounds.
protocol ContentDecoder: AnyObject {
  /// Decodes the beginning of `input`.
  ///
  /// - Parameters:
  ///   - input: the next coded bytes; empty to get the bytes that the decoder still holds.
  ///   - output: receives decoded bytes; not empty.
  /// - Returns: how many bytes were read and written. Both are 0 only if `input` is empty.
  /// - Throws: if the data is damaged.
  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(DecodingFailure) -> (read: Int, written: Int)

  /// Whether the coded data may end after the bytes that were read.
  var isAtEnd: Bool { get }
}
