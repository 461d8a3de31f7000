import HTTPTransferCore
import LinuxSystem
import Synchronization

/// The bytes that all entries occupy on the disk: counted once, then updated.
final class AllocatedBytes: Sendable {
  private let root: CacheRoot
  /// Nil before the first count.
  private let known = Mutex<Int64?>(nil)

  init(_ root: CacheRoot) { self.root = root }

  var byteCount: Int64 {
    if let known = known.withLock({ $0 }) { return known }
    return count().reduce(0) { $0.saturatingSum($1.allocatedByteCount) }
  }

  /// Reads the size of every entry and keeps the sum.
  func count() -> [StoredEntry] {
    let entries = (try? StoredEntry.all(in: root.files)) ?? []
    let sum = entries.reduce(Int64(0)) { $0.saturatingSum($1.allocatedByteCount) }
    known.withLock { $0 = sum }
    return entries
  }

  func recordStored(_ byteCount: Int64) {
    known.withLock { known in known = known?.saturatingSum(byteCount) }
  }

  func recordFreed(_ byteCount: Int64) {
    known.withLock { known in known = known.map { max(0, $0 - byteCount) } }
  }
}
