import CZlib

/// Inflates gzip data (RFC 1952) of one or several members.
package enum GzipInflater {
  package enum Failure: Error, Equatable, CustomStringConvertible {
    case damaged
    case truncated
    case tooLong(maximumByteCount: Int)
    case noMemory

    package var description: String {
      switch self {
      case .damaged: "the gzip data is damaged; get the list again"
      case .truncated: "the gzip data ends too early; get the list again"
      case .tooLong(let maximum): "the list inflates to more than \(maximum) bytes"
      case .noMemory: "no memory to inflate the list"
      }
    }
  }

  /// Whether the data starts as gzip does (RFC 1952 §2.3.1).
  static func isGzip(_ bytes: [UInt8]) -> Bool { bytes.starts(with: [0x1F, 0x8B]) }

  /// How many bytes to inflate at a time: enough that the cost of the calls does not matter, and
  /// few enough to stay in the processor's cache.
  private static let chunkByteCount = 256 * 1024

  /// Inflates `bytes` piece by piece, so that the complete text is never in memory.
  ///
  /// Like gzip, it ignores bytes after the last member that do not start another one.
  ///
  /// - Parameters:
  ///   - bytes: The compressed data, from the head of its first member.
  ///   - maximumByteCount: The maximum number of inflated bytes.
  ///   - consume: Takes the next piece; returns false to stop early.
  /// - Throws: What is wrong with the data; ``Failure/tooLong`` if there are more bytes.
  package static func inflate(
    _ bytes: [UInt8], maximumByteCount: Int, consume: (ArraySlice<UInt8>) -> Bool
  ) throws(Failure) {
    var stream = z_stream()
    guard httpfs_inflate_init(&stream) == Z_OK else { throw .noMemory }
    defer { inflateEnd(&stream) }

    var output = [UInt8](repeating: 0, count: chunkByteCount)
    var offset = 0
    var produced = 0
    while true {
      let step = inflateStep(&stream, input: bytes, at: offset, into: &output)
      offset += step.consumed
      produced += step.produced
      guard produced <= maximumByteCount else {
        throw .tooLong(maximumByteCount: maximumByteCount)
      }
      switch step.code {
      case Z_OK, Z_BUF_ERROR, Z_STREAM_END: break
      case Z_MEM_ERROR: throw .noMemory
      default: throw .damaged
      }
      if step.produced > 0, !consume(output[..<step.produced]) { return }
      if step.code == Z_STREAM_END {
        guard bytes[offset...].starts(with: [0x1F, 0x8B]) else { return }
        guard inflateReset(&stream) == Z_OK else { throw .damaged }
      } else if step.produced == 0, step.consumed == 0 {
        // There is no progress although there is room for output: the input ends inside a member.
        throw .truncated
      }
    }
  }

  /// Calls `inflate` once; returns how much it read and wrote.
  private static func inflateStep(
    _ stream: inout z_stream, input: [UInt8], at offset: Int, into output: inout [UInt8]
  ) -> (code: Int32, consumed: Int, produced: Int) {
    input.withUnsafeBufferPointer { source in
      output.withUnsafeMutableBufferPointer { target in
        // zlib counts in 32 bits.
        let inputCount = min(source.count - offset, 1 << 30)
        // zlib does not write to its input, although the type allows it.
        stream.next_in = UnsafeMutablePointer(mutating: source.baseAddress.map { $0 + offset })
        stream.avail_in = UInt32(inputCount)
        stream.next_out = target.baseAddress
        stream.avail_out = UInt32(target.count)
        let code = CZlib.inflate(&stream, Z_NO_FLUSH)
        return (
          code, inputCount - Int(stream.avail_in), target.count - Int(stream.avail_out)
        )
      }
    }
  }
}
