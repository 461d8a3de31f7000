import CZlib

/// Coded forms of bytes.
enum Coded {
  /// What zlib puts around its data.
  enum Frame: CInt {
    case gzip = 31
    case zlib = 15
    case bare = -15
  }

  /// `bytes` in deflate.
  static func deflate(_ bytes: [UInt8], _ frame: Frame) -> [UInt8] {
    var stream = z_stream()
    guard
      deflateInit2_(
        &stream, 6, Z_DEFLATED, frame.rawValue, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        CInt(MemoryLayout<z_stream>.size)) == Z_OK
    else { return [] }
    defer { deflateEnd(&stream) }
    var source = bytes
    var target = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))))
    let count = source.withUnsafeMutableBufferPointer { source in
      target.withUnsafeMutableBufferPointer { target in
        stream.next_in = source.baseAddress
        stream.avail_in = UInt32(source.count)
        stream.next_out = target.baseAddress
        stream.avail_out = UInt32(target.count)
        _ = CZlib.deflate(&stream, Z_FINISH)
        return target.count - Int(stream.avail_out)
      }
    }
    return Array(target[..<count])
  }

  /// A Zstandard frame (RFC 8878) of `blockCount` runs of 128 KiB, each of which takes four bytes.
  ///
  /// - Parameters:
  ///   - blockCount: how many runs.
  ///   - windowLog: the binary logarithm of the window's size.
  /// - Returns: the frame.
  static func zstandardRuns(_ blockCount: Int, windowLog: UInt8 = 23) -> [UInt8] {
    // The magic number, a descriptor without anything optional, and the window.
    var bytes: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0, (windowLog - 10) << 3]
    for index in 1...blockCount {
      let head = UInt32(128 << 10) << 3 | 1 << 1 | (index == blockCount ? 1 : 0)
      bytes += [
        UInt8(truncatingIfNeeded: head), UInt8(truncatingIfNeeded: head >> 8),
        UInt8(truncatingIfNeeded: head >> 16), UInt8(ascii: "a"),
      ]
    }
    return bytes
  }

  /// Brotli (RFC 7932): one uncompressed meta-block of "hello", then an empty last one.
  static let brotliHello: [UInt8] = [0x0B, 0x02, 0x80] + Array("hello".utf8) + [0x03]
}
