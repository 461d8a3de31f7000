/// Records which writes to a file have reached the disk.
///
/// A sync covers the writes that had ended when it began. A write that is in progress when a sync
/// begins may reach the file after the sync.
struct WriteMarks: Sendable {
  /// The number of writes that had ended at one moment.
  struct Mark: Sendable { fileprivate let endedCount: Int }

  private var endedCount: Int
  private var underWayCount = 0
  private var syncedCount = 0

  /// - Parameter hasUnsynced: whether writes of an earlier object may not be on the disk.
  init(hasUnsynced: Bool) { endedCount = hasUnsynced ? 1 : 0 }

  mutating func begin() { underWayCount += 1 }

  /// Ends a write that has succeeded or failed: it may have changed the file either way.
  mutating func end() {
    underWayCount -= 1
    endedCount += 1
  }

  /// The writes that a sync which begins now covers.
  var mark: Mark { Mark(endedCount: endedCount) }

  /// Records a successful sync.
  mutating func recordSync(since mark: Mark) { syncedCount = max(syncedCount, mark.endedCount) }

  /// Whether all writes are on the disk.
  var areSynced: Bool { underWayCount == 0 && endedCount == syncedCount }
}
