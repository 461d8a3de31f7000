internal import CPassthrough
internal import Synchronization

/// Buffers for the replies that libfuse cannot splice.
///
/// The kernel reads ahead a mebibyte at a time. Such a reply does not fit into the pipe of a
/// process that may not exceed `pipe-max-size`. libfuse would read it into a new buffer, in which
/// each page faults.
enum ReplyBuffers {
  /// The longest reply that the kernel asks for by default.
  private static let byteCount = 1 << 20

  /// How many buffers are kept for the next replies.
  private static let keptCount = 4

  /// Memory that nobody uses while it is idle.
  ///
  /// `@unchecked Sendable`: the lock of ``idle`` hands it to one reply at a time.
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
    let kept = count <= byteCount ? idle.withLock { $0.popLast() } : nil
    let buffer =
      kept ?? Buffer(bytes: .allocate(byteCount: max(count, byteCount), alignment: 4096))
    defer {
      let isKept = idle.withLock { idle in
        guard buffer.bytes.count == byteCount, idle.count < keptCount else { return false }
        idle.append(buffer)
        return true
      }
      if !isKept { buffer.bytes.deallocate() }
    }
    return body(UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<count]))
  }
}
