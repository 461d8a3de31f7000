internal import CZlib

/// Decodes gzip (RFC 1952), of one or several members, and deflate.
///
/// HTTP's deflate is a zlib stream (RFC 1950), but some servers send the bare data (RFC 1951).
final class InflateDecoder: ContentDecoder {
  private let coding: ContentCoding
  /// At a fixed address, because zlib keeps a pointer to it; nil before the first byte.
  private var stream: UnsafeMutablePointer<z_stream>?
  private(set) var isAtEnd = false

  init(_ coding: ContentCoding) { self.coding = coding }

  deinit {
    guard let stream else { return }
    inflateEnd(stream)
    stream.deallocate()
  }

  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(DecodingFailure) -> (read: Int, written: Int) {
    // The decoder holds no bytes before the first input byte and after the end.
    guard !input.isEmpty || stream != nil && !isAtEnd else { return (0, 0) }
    let stream = if let stream { stream } else { try begin(input[0]) }
    if isAtEnd {
      guard coding == .gzip else { throw .excess(coding) }
      guard inflateReset(stream) == Z_OK else { throw .damaged(coding) }
      isAtEnd = false
    }
    // zlib counts in 32 bits. It does not write to its input, although the type allows that.
    let (inputCount, outputCount) = (min(input.count, 1 << 30), min(output.count, 1 << 30))
    stream.pointee.next_in = UnsafeMutableRawPointer(mutating: input.baseAddress)?
      .assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_in = UInt32(inputCount)
    stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = UInt32(outputCount)
    switch inflate(stream, Z_NO_FLUSH) {
    case Z_OK, Z_BUF_ERROR: break
    case Z_STREAM_END: isAtEnd = true
    case Z_MEM_ERROR: throw .noMemory
    default:
      throw .damaged(coding, detail: stream.pointee.msg.map { String(cString: $0) } ?? "")
    }
    return (
      inputCount - Int(stream.pointee.avail_in), outputCount - Int(stream.pointee.avail_out)
    )
  }

  private func begin(
    _ first: UInt8
  ) throws(DecodingFailure) -> UnsafeMutablePointer<z_stream> {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    // A zlib stream begins with the method 8 in the low half of its first byte. In bare data these
    // bits would begin a stored block with padding that is not zero, which no encoder makes.
    let isBare = coding == .deflate && first & 0x0F != 8
    guard (isBare ? httpfs_inflate_init_bare(stream) : httpfs_inflate_init(stream)) == Z_OK else {
      stream.deallocate()
      throw .noMemory
    }
    self.stream = stream
    return stream
  }
}
