/// Proof that everything stored up to some moment is on the disk.
///
/// ``CacheEntry/syncData()`` returns it and ``CacheEntry/appendCommit(_:fetchedByteCount:)`` needs
/// it.
package struct Checkpoint: Sendable {
  /// The entry that it belongs to.
  let entry: ObjectIdentifier
  /// The number of the last record whose bytes are on the disk.
  let sequence: UInt64
  /// The bytes stored by this object up to that record.
  let storedByteCount: Int64
  /// The writes to the data file that had ended by then, recorded or not.
  let writes: WriteMarks.Mark
}
