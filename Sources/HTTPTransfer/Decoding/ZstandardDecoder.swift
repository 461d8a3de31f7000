internal import CZstandard

/// Decodes Zstandard (RFC 8878), of one or several frames.
final class ZstandardDecoder: ContentDecoder {
  /// The largest window that a server may expect of a client: 8 MiB (RFC 9659 §3).
  private static let windowLog: CInt = 23

  private let stream: OpaquePointer
  private(set) var isAtEnd = false

  init?() {
    guard let stream = ZSTD_createDStream() else { return nil }
    self.stream = stream
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLog)
  }

  deinit { ZSTD_freeDStream(stream) }

  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(DecodingFailure) -> (read: Int, written: Int) {
    if isAtEnd, input.isEmpty { return (0, 0) }
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
    let rest = ZSTD_decompressStream(stream, &target, &source)
    guard ZSTD_isError(rest) == 0 else {
      throw .damaged(.zstandard, detail: String(cString: ZSTD_getErrorName(rest)))
    }
    isAtEnd = rest == 0
    return (source.pos, target.pos)
  }
}
