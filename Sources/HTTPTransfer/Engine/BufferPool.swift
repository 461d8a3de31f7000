internal import Glibc
internal import Synchronization

/// Buffers that gather the pieces of a body into one write.
///
/// libcurl hands over at most 16 KiB at a time. Writing each piece costs three times as much as
/// gathering 512 KiB (1.0–1.3 s against 0.37–0.39 s per GiB).
package final class BufferPool: Sendable {
  package static let bufferByteCount = 512 << 10

  /// The maximum number of buffers kept for reuse; a new one costs page faults, not correctness.
  private static let keptCount = 16

  /// The limit for the unstored bytes of all buffers, apart from the minimum of each: a crash loses
  /// them.
  package static let gatheredByteLimit = 8 << 20

  /// The capacity of a buffer is the unused part of the limit, divided by this.
  private static let share = 4

  /// The minimum capacity: a system call for fewer bytes costs more than the write.
  package static let minimumGatherByteCount = 64 << 10

  private struct State {
    var idle: [GatherBuffer] = []
    /// The total capacity of the buffers in use.
    var reservedByteCount = 0
  }

  private let state = Mutex(State())

  package init() {}

  /// Returns a buffer whose capacity shrinks as more are in use.
  ///
  /// So all buffers together never hold more than the limit and the minimum of each.
  package func take() -> GatherBuffer {
    let (idle, capacity) = state.withLock { state in
      let part = (Self.gatheredByteLimit - state.reservedByteCount) / Self.share
      let capacity = max(Self.minimumGatherByteCount, min(Self.bufferByteCount, part))
      state.reservedByteCount += capacity
      return (state.idle.popLast(), capacity)
    }
    let buffer = idle ?? GatherBuffer(byteCount: Self.bufferByteCount)
    buffer.limit(to: capacity)
    return buffer
  }

  package func giveBack(_ buffer: GatherBuffer) {
    state.withLock { state in
      state.reservedByteCount -= buffer.capacity
      if state.idle.count < Self.keptCount { state.idle.append(buffer) }
    }
  }
}

/// One buffer, owned by one transfer at a time.
///
/// `@unchecked Sendable`: handed over under the pool's lock and used by its owner only.
package final class GatherBuffer: @unchecked Sendable {
  package let bytes: UnsafeMutableRawBufferPointer
  /// How many bytes the owner gathers before it hands them over.
  package private(set) var capacity = 0
  /// The number of bytes from the start that may occupy memory: the largest capacity since memory
  /// was last returned to the system.
  private var usedByteCount = 0

  /// Allocates separate pages, which return to the system with the buffer; the heap would keep
  /// them.
  package init(byteCount: Int) {
    let pages = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let pages, pages != MAP_FAILED else {
      preconditionFailure("out of memory for a buffer of \(byteCount) bytes")
    }
    bytes = UnsafeMutableRawBufferPointer(start: pages, count: byteCount)
  }

  /// Sets the capacity, and returns memory to the system if most of what was used lies beyond it.
  ///
  /// A smaller part stays, because each page that returns costs a page fault when it is used again.
  ///
  /// - Parameter capacity: at most the size of the buffer.
  fileprivate func limit(to capacity: Int) {
    self.capacity = capacity
    if usedByteCount > 2 * capacity {
      let pageByteCount = Int(getpagesize())
      let kept = (capacity + pageByteCount - 1) / pageByteCount * pageByteCount
      let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[kept..<bytes.count])
      // A failure costs memory only.
      madvise(rest.baseAddress, rest.count, MADV_DONTNEED)
      usedByteCount = capacity
    }
    usedByteCount = max(usedByteCount, capacity)
  }

  deinit { munmap(bytes.baseAddress, bytes.count) }
}
