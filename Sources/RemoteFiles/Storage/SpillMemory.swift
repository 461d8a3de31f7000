internal import HTTPTransferCore
internal import Synchronization

/// Bounds the memory of all files of a mount while the cache fails.
///
/// It drops first the bytes that were stored first.
final class SpillMemory: Sendable {
  /// Enough for the read-ahead of several readers; small beside what a page cache takes.
  static let byteLimit: Int64 = 32 << 20

  /// A range that was written to a file in memory; it counts as long as the file lives.
  private struct Item {
    weak var file: SpillFile?
    weak var keeper: (any ByteKeeper)?
    let range: ByteRange
  }

  private struct State {
    /// The oldest first.
    var items: [Item] = []
    var byteCount: Int64 = 0

    /// Removes the ranges of files that have been freed.
    mutating func forgetEnded() {
      items.removeAll { item in
        guard item.file == nil else { return false }
        byteCount -= item.range.byteCount
        return true
      }
    }
  }

  /// Held while memory is written or dropped; acquired before the locks of versions.
  let writing = Mutex(())
  private let state = Mutex(State())

  /// The number of bytes that are kept.
  var byteCount: Int64 {
    state.withLock {
      $0.forgetEnded()
      return $0.byteCount
    }
  }

  /// Counts `range`, which `file` of `keeper` now holds, and drops older ranges beyond the limit.
  func note(_ range: ByteRange, in file: SpillFile, of keeper: any ByteKeeper) {
    let (older, excess) = state.withLock { state -> ([Item], Int64) in
      var older: [Item] = []
      if state.byteCount + range.byteCount > Self.byteLimit {
        state.forgetEnded()
        if state.byteCount + range.byteCount > Self.byteLimit {
          older = state.items
          state.items = []
        }
      }
      state.items.append(Item(file: file, keeper: keeper, range: range))
      state.byteCount += range.byteCount
      return (older, state.byteCount - Self.byteLimit)
    }
    if !older.isEmpty { giveUp(excess, of: older) }
  }

  /// Drops the first `byteCount` bytes of `items` that no read waits for.
  private func giveUp(_ byteCount: Int64, of items: [Item]) {
    var freed: Int64 = 0
    // Bytes that readers need now stay, even beyond the limit.
    let kept = items.filter { item in
      guard freed < byteCount else { return true }
      if let file = item.file, let keeper = item.keeper,
        !keeper.giveUpSpilled(item.range, in: file)
      {
        return true
      }
      freed += item.range.byteCount
      return false
    }
    state.withLock {
      $0.items = kept + $0.items
      $0.byteCount -= freed
    }
  }
}
