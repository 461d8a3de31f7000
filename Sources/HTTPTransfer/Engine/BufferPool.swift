internal import Glibc
internal import Synchronization

/// Buffers that gather the pieces of a body into one write.
///
/// libcurl hands over at most 16 KiB at a time; writing each piece costs three times as much as
/// gathering 512 KiB (1.0–1.3 s against 0.37–0.39 s a GiB).
package final class BufferPool: Sendable {
  package static let bufferByteCount = 512 << 10

  /// The buffers kept for reuse, at most; a fresh one costs page faults, not correctness.
  private static let keptCount = 8

  /// What all buffers together may hold that is not stored, apart from the least of each: a crash
  /// loses it.
  package static let gatheredByteLimit = 8 << 20

  /// A buffer takes this part of what is left of the limit.
  private static let share = 16

  /// A system call for less costs more than what it writes.
  package static let leastGatherByteCount = 64 << 10

  private struct State {
    var idle: [GatherBuffer] = []
    /// The capacities of the buffers that are in use.
    var reservedByteCount = 0
  }

  private let state = Mutex(State())

  package init() {}

  /// A buffer, whose capacity is the smaller the more are in use, so that all of them never hold
  /// more than the limit and the least of each.
  package func take() -> GatherBuffer {
    let (idle, capacity) = state.withLock { state in
      let part = (Self.gatheredByteLimit - state.reservedByteCount) / Self.share
      let capacity = max(Self.leastGatherByteCount, min(Self.bufferByteCount, part))
      state.reservedByteCount += capacity
      return (state.idle.popLast(), capacity)
    }
    let buffer = idle ?? GatherBuffer(byteCount: Self.bufferByteCount)
    buffer.capacity = capacity
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
/// `@unchecked Sendable`: it is handed over through the pool's lock and used by its owner only.
package final class GatherBuffer: @unchecked Sendable {
  package let bytes: UnsafeMutableRawBufferPointer
  /// How many bytes its owner gathers before it hands them over.
  package fileprivate(set) var capacity = 0

  /// Pages of its own, which go back to the system with it; the heap would keep them.
  package init(byteCount: Int) {
    let pages = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let pages, pages != MAP_FAILED else {
      preconditionFailure("out of memory for a buffer of \(byteCount) bytes")
    }
    bytes = UnsafeMutableRawBufferPointer(start: pages, count: byteCount)
  }

  deinit { munmap(bytes.baseAddress, bytes.count) }
}
