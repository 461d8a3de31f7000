internal import CBrotli

/// Decodes brotli (RFC 7932), whose window has at most 16 MiB.
final class BrotliDecoder: ContentDecoder {
  private let state: OpaquePointer
  private(set) var isAtEnd = false

  init?() {
    guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else { return nil }
    self.state = state
  }

  deinit { BrotliDecoderDestroyInstance(state) }

  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(DecodingFailure) -> (read: Int, written: Int) {
    if isAtEnd {
      guard input.isEmpty else { throw .excess(.brotli) }
      return (0, 0)
    }
    var (inputCount, outputCount) = (input.count, output.count)
    var nextInput = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
    var nextOutput = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
    let result = BrotliDecoderDecompressStream(
      state, &inputCount, &nextInput, &outputCount, &nextOutput, nil)
    switch result {
    case BROTLI_DECODER_RESULT_SUCCESS: isAtEnd = true
    case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT, BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: break
    default: throw .damaged(.brotli)
    }
    return (input.count - inputCount, output.count - outputCount)
  }
}
