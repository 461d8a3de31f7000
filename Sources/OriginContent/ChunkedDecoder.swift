/// Removes the framing of a chunked body (RFC 9112 §7.1); trailer fields are dropped.
///
/// It stores no bytes, and pieces may be cut anywhere.
package struct ChunkedDecoder: Equatable, Sendable {
  /// The bytes are not a chunked body.
  package struct Malformed: Error, Equatable, Sendable {}

  private enum State: Equatable {
    /// Within a chunk's size.
    case size(Int64, digitCount: Int)
    /// After a chunk's size: an extension, or the carriage return.
    case sizeLineEnd(Int64)
    case data(remaining: Int64)
    case dataCarriageReturn
    case dataLineFeed
    /// Within the trailer section, after this many characters of a line.
    case trailer(lineByteCount: Int)
    case end
  }

  private var state = State.size(0, digitCount: 0)

  package init() {}

  /// Whether the end of the body, including its last line, was reached.
  package var isAtEnd: Bool { state == .end }

  /// Decodes a piece.
  ///
  /// - Parameters:
  ///   - bytes: the bytes that follow those of the last call.
  ///   - data: called with each run of body bytes.
  /// - Returns: how many bytes belong to the body and its framing; less than all only at its end.
  /// - Throws: ``Malformed``; the decoder cannot be used afterwards.
  package mutating func decode(
    _ bytes: UnsafeRawBufferPointer, data: (UnsafeRawBufferPointer) -> Void
  ) throws(Malformed) -> Int {
    var position = 0
    while position < bytes.count, state != .end {
      if case .data(let remaining) = state {
        let byteCount = Int(min(remaining, Int64(bytes.count - position)))
        data(UnsafeRawBufferPointer(rebasing: bytes[position..<(position + byteCount)]))
        position += byteCount
        let rest = remaining - Int64(byteCount)
        state = rest == 0 ? .dataCarriageReturn : .data(remaining: rest)
      } else {
        state = try next(bytes[position])
        position += 1
      }
    }
    return position
  }

  /// The state after a byte of framing.
  private func next(_ byte: UInt8) throws(Malformed) -> State {
    let lineFeed: UInt8 = 0x0A
    let carriageReturn: UInt8 = 0x0D
    switch state {
    case .size(let size, let digitCount):
      if let digit = ByteText.hexDigit(byte) {
        // 15 digits fit into a signed 64-bit number.
        guard digitCount < 15 else { throw Malformed() }
        return .size(size << 4 | Int64(digit), digitCount: digitCount + 1)
      }
      guard digitCount > 0 else { throw Malformed() }
      switch byte {
      case carriageReturn, UInt8(ascii: ";"), UInt8(ascii: " "), UInt8(ascii: "\t"):
        return .sizeLineEnd(size)
      default: throw Malformed()
      }
    case .sizeLineEnd(let size):
      guard byte == lineFeed else { return state }
      return size == 0 ? .trailer(lineByteCount: 0) : .data(remaining: size)
    case .dataCarriageReturn:
      guard byte == carriageReturn else { throw Malformed() }
      return .dataLineFeed
    case .dataLineFeed:
      guard byte == lineFeed else { throw Malformed() }
      return .size(0, digitCount: 0)
    case .trailer(let lineByteCount):
      if byte == carriageReturn { return state }
      guard byte == lineFeed else { return .trailer(lineByteCount: lineByteCount + 1) }
      return lineByteCount == 0 ? .end : .trailer(lineByteCount: 0)
    case .data, .end: return state
    }
  }
}
