public import ExtentRecord
import Glibc
public import HTTPTransferCore

/// What `httpfs cache` does with a directory that it alone holds, and what a mount does for it.
extension CacheDirectory {
  /// Compares all bytes of an entry with their recorded hashes; changes nothing, and goes on beside
  /// an entry object that records.
  ///
  /// Reads all that is cached of the file, whatever its stamp says, and waits for the disk. Where
  /// anything is damaged the stamp does not hold any more.
  ///
  /// - Returns: of which version the entry is, and which of the bytes that it claims are damaged; nil
  ///   where there is no entry that can be believed.
  /// - Throws: where a file cannot be opened or read.
  public func audit(
    _ key: CacheKey
  ) throws(CacheError) -> (version: ContentVersion, damaged: ExtentSet)? {
    do throws(ErrorNumber) {
      guard case .found(let stored) = try StoredFiles.open(key, in: files) else { return nil }
      let data = try stored.openData()
      var damaged = try damagedExtents(of: stored, in: data)
      if !damaged.isEmpty {
        // What is stored meanwhile may lie past the end that the data file had at first.
        let again = try damagedExtents(of: stored, in: data)
        damaged = ExtentSet(damaged.extents.flatMap { again.runs(in: $0) })
      }
      if !damaged.isEmpty, let data { Self.distrust(data) }
      return (stored.header.version, damaged)
    } catch {
      throw CacheError(error, path: path(of: key))
    }
  }

  /// The bytes that the record of an entry claims, and that no claim is right about.
  private func damagedExtents(
    of stored: StoredFiles, in data: Descriptor?
  ) throws(ErrorNumber) -> ExtentSet {
    let recovery = try Recovery(
      log: stored.log, header: stored.header, data: data, uncommitted: .verify,
      trustsCommits: false)
    return ExtentSet(recovery.claimed.extents.flatMap { recovery.extents.holes(in: $0) })
  }

  /// Compares all bytes of an entry with their recorded hashes, those that a COMMIT covers too, whatever
  /// its stamp says.
  ///
  /// Reads all that is cached of the file. Without `repairing` nothing changes, not even when the
  /// entry was used last, but that the stamp of a damaged one does not hold any more.
  ///
  /// - Parameters:
  ///   - entry: what to look at.
  ///   - repairing: whether the record is replaced by one without the claims that are false, so
  ///     that the next mount fetches those bytes and no others. An entry whose header or data file
  ///     is lost is removed. A repaired entry counts as used now.
  /// - Returns: what was found; nil where there is no record, or one of a later version of httpfs.
  /// - Throws: where a file cannot be opened, read or replaced.
  public func check(_ entry: StoredEntry, repairing: Bool) throws(CacheError) -> EntryCheck? {
    if repairing { endRecording(of: entry.key) }
    let isUseless: Bool
    let result: EntryCheck
    do throws(ErrorNumber) {
      switch try StoredFiles.open(entry.key, in: files) {
      case .missing, .laterFormat: return nil
      case .damaged:
        result = EntryCheck(claimedByteCount: 0, damagedByteCount: 0, isRecordDamaged: true)
        isUseless = true
      case .found(let stored):
        let data = try stored.openData()
        let recovery = try Recovery(
          log: stored.log, header: stored.header, data: data, uncommitted: .verify,
          trustsCommits: false)
        result = EntryCheck(recovery)
        if result.isDamaged, let data { Self.distrust(data) }
        if data == nil {
          isUseless = true
        } else if repairing, result.isDamaged {
          isUseless =
            try recovery.rewrite(
              log: stored.log, header: stored.header, salt: .random(in: .min ... .max),
              in: stored.directory) == nil
        } else {
          isUseless = false
        }
      }
    } catch {
      throw CacheError(error, path: path(of: entry.key))
    }
    if repairing, isUseless, result.isDamaged { try remove(entry) }
    return result
  }

  /// Removes an entry, and says so where that fails.
  ///
  /// What was pinned is not any more. Files that the cache did not write stay. Not while entries are being created: the directory
  /// that groups them goes with the last of them.
  ///
  /// - Parameter entry: what to remove.
  /// - Returns: the number of bytes that its files occupied.
  /// - Throws: where its record cannot be removed; then the entry is as it was.
  @discardableResult
  public func remove(_ entry: StoredEntry) throws(CacheError) -> Int64 {
    endRecording(of: entry.key)
    var freed: Int64 = 0
    do throws(ErrorNumber) {
      let directory = try openDirectory(of: entry.key)
      let record = try SystemCalls.status(RecordFile.name, in: directory.rawValue)
      try SystemCalls.unlink(RecordFile.name, in: directory.rawValue)
      freed = record.allocatedByteCount
    } catch {
      // Without a record there may still be what a crash has left.
      guard error.rawValue == ENOENT else { throw CacheError(error, path: path(of: entry.key)) }
    }
    noteFreed(freed)
    let leftFreed = deleteFiles(of: entry.key)
    noteFreed(leftFreed)
    if isPinned(entry.key) {
      setPinned(false, entry.key)
      try storePin(false, of: entry.key)
    }
    // Fails, rightly, while it holds other entries.
    try? SystemCalls.removeDirectory(entry.key.prefixName, in: files.rawValue)
    return freed + leftFreed
  }
}
