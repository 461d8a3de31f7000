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

  /// What all buffers together may hold that is not stored: a crash loses it.
  private static let gatheredByteLimit = 8 << 20

  /// A system call for less costs more than what it writes.
  private static let leastGatherByteCount = 64 << 10

  private let idle = Mutex<[GatherBuffer]>([])
  private let takenCount = Atomic<Int>(0)

  package init() {}

  /// How many bytes a writer gathers in a buffer before it hands them over: fewer where many buffers
  /// are in use.
  package var gatherByteCount: Int {
    let share = Self.gatheredByteLimit / max(1, takenCount.load(ordering: .relaxed))
    return max(Self.leastGatherByteCount, min(Self.bufferByteCount, share))
  }

  package func take() -> GatherBuffer {
    takenCount.add(1, ordering: .relaxed)
    return idle.withLock { $0.popLast() } ?? GatherBuffer(byteCount: Self.bufferByteCount)
  }

  package func giveBack(_ buffer: GatherBuffer) {
    takenCount.subtract(1, ordering: .relaxed)
    idle.withLock { if $0.count < Self.keptCount { $0.append(buffer) } }
  }
}

/// One buffer, owned by one transfer at a time.
///
/// `@unchecked Sendable`: it is handed over through the pool's lock and used by its owner only.
package final class GatherBuffer: @unchecked Sendable {
  package let bytes: UnsafeMutableRawBufferPointer

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
