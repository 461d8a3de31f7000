internal import HTTPTransferCore
internal import Synchronization

/// Bounds what all files of a mount keep in memory while the cache fails: what was stored first is
/// given up first.
///
/// For the storage queue, which alone stores.
final class SpillMemory: Sendable {
  /// Enough for the read-ahead of several readers; small beside what a page cache takes.
  static let byteLimit: Int64 = 32 << 20

  /// The most that is read ahead for one reader of such a file: what comes earlier than it is read
  /// would be given up again.
  static let readAheadByteCount: Int64 = 4 << 20

  private struct Item {
    weak var version: RemoteVersion?
    let range: ByteRange
  }

  private struct State {
    /// The oldest first.
    var items: [Item] = []
    var byteCount: Int64 = 0
  }

  private let state = Mutex(State())

  /// Counts `range` of `version`, and gives up what is too much by now.
  func note(_ range: ByteRange, of version: RemoteVersion) {
    let excess = state.withLock { state -> Int64 in
      state.items.append(Item(version: version, range: range))
      state.byteCount += range.byteCount
      return state.byteCount - Self.byteLimit
    }
    if excess > 0 { giveUp(excess) }
  }

  /// Gives up the oldest `byteCount` bytes that nobody waits for.
  private func giveUp(_ byteCount: Int64) {
    let items = state.withLock { state in
      defer { state.items = [] }
      return state.items
    }
    var freed: Int64 = 0
    // What readers need just now stays, also beyond the limit.
    let kept = items.filter { item in
      guard freed < byteCount else { return true }
      guard item.version?.giveUpSpilled(item.range) ?? true else { return true }
      freed += item.range.byteCount
      return false
    }
    state.withLock {
      $0.items = kept
      $0.byteCount -= freed
    }
  }
}
