internal import CPassthrough
internal import Synchronization

/// Buffers for the replies that libfuse cannot splice.
///
/// The kernel reads ahead a mebibyte at a time. Such a reply does not fit into the pipe of a
/// process that may not exceed `pipe-max-size`. libfuse would read it into a new buffer, in which
/// each page faults: 0.3 s of processor time per GiB.
enum ReplyBuffers {
  /// The longest reply that the kernel asks for.
  private static let byteCount = 1 << 20

  /// How many buffers are kept for the next replies.
  private static let keptCount = 4

  private struct Buffer: @unchecked Sendable {
    let bytes: UnsafeMutableRawBufferPointer
  }

  private static let idle = Mutex<[Buffer]>([])

  /// The longest reply that fits into the pipe of libfuse, which also holds its header.
  static let longestSpliced: Int = {
    let headerByteCount = 4 * 4096
    return httpfs_pipe_holds(CInt(byteCount + headerByteCount))
      ? .max : byteCount - headerByteCount
  }()

  /// Runs `body` with a buffer of `count` bytes.
  static func withBuffer<Result>(
    of count: Int, _ body: (UnsafeMutableRawBufferPointer) -> Result
  ) -> Result {
    guard count <= byteCount else {
      let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 4096)
      defer { bytes.deallocate() }
      return body(bytes)
    }
    let buffer =
      idle.withLock { $0.popLast() }
      ?? Buffer(bytes: .allocate(byteCount: byteCount, alignment: 4096))
    defer {
      let isKept = idle.withLock { idle in
        guard idle.count < keptCount else { return false }
        idle.append(buffer)
        return true
      }
      if !isKept { buffer.bytes.deallocate() }
    }
    return body(UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<count]))
  }
}
