/// Content in a coded form, made from start to end without storing it.
package struct CodedStream {
  /// Returns the bytes of the content from an offset on; false if there are none.
  package typealias Read = (_ buffer: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Bool

  private let coding: ContentCoding
  private let contentByteCount: Int64
  private let header: [UInt8]
  private let trailerPosition: Int64
  private var checksum: Checksum

  /// How many bytes of the coded form have been made.
  package private(set) var position: Int64 = 0

  package init(coding: ContentCoding, contentByteCount: Int64) {
    self.coding = coding
    self.contentByteCount = contentByteCount
    header = coding.header
    trailerPosition =
      coding.codedByteCount(contentByteCount: contentByteCount) - coding.trailerByteCount
    checksum = coding == .gzip ? .crc32 : .adler32
  }

  /// Makes the next bytes of the coded form.
  ///
  /// - Parameters:
  ///   - buffer: filled completely; must not be longer than the rest of the coded form.
  ///   - read: returns the content, each byte once and in order.
  /// - Returns: false if `read` returned false.
  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer, read: Read) -> Bool {
    var index = 0
    while index < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[index...])
      guard let byteCount = step(rest, read: read) else { return false }
      index += byteCount
      position += Int64(byteCount)
    }
    return true
  }

  /// Makes a byte of framing or a run of content; returns the number of bytes, nil if `read`
  /// failed.
  private mutating func step(_ buffer: UnsafeMutableRawBufferPointer, read: Read) -> Int? {
    if position < header.count {
      buffer[0] = header[Int(position)]
      return 1
    }
    if position >= trailerPosition {
      buffer[0] = trailerByte(Int(position - trailerPosition))
      return 1
    }
    let stride = ContentCoding.blockByteCount + ContentCoding.blockHeaderByteCount
    let (block, place) = (position - Int64(header.count)).quotientAndRemainder(dividingBy: stride)
    let start = block * ContentCoding.blockByteCount
    let blockByteCount = min(ContentCoding.blockByteCount, contentByteCount - start)
    if place < ContentCoding.blockHeaderByteCount {
      let isLast = start + blockByteCount == contentByteCount
      buffer[0] = blockHeaderByte(Int(place), length: UInt16(blockByteCount), isLast: isLast)
      return 1
    }
    let done = place - ContentCoding.blockHeaderByteCount
    let piece = UnsafeMutableRawBufferPointer(
      rebasing: buffer[..<Int(min(Int64(buffer.count), blockByteCount - done))])
    guard read(piece, start + done) else { return nil }
    checksum.update(UnsafeRawBufferPointer(piece))
    return piece.count
  }

  private func blockHeaderByte(_ index: Int, length: UInt16, isLast: Bool) -> UInt8 {
    switch index {
    case 0: isLast ? 1 : 0
    case 1: UInt8(truncatingIfNeeded: length)
    case 2: UInt8(truncatingIfNeeded: length >> 8)
    case 3: UInt8(truncatingIfNeeded: ~length)
    default: UInt8(truncatingIfNeeded: ~length >> 8)
    }
  }

  private func trailerByte(_ index: Int) -> UInt8 {
    switch coding {
    case .gzip:
      let word = index < 4 ? checksum.value : UInt32(truncatingIfNeeded: contentByteCount)
      return UInt8(truncatingIfNeeded: word >> (8 * UInt32(index & 3)))
    case .deflate: return UInt8(truncatingIfNeeded: checksum.value >> (24 - 8 * UInt32(index)))
    }
  }
}
