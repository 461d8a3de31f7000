public import ExtentRecord
import Glibc
public import HTTPTransferCore
internal import LinuxSystem

/// The operations of `httpfs cache` on a directory that it has locked, and of a mount.
extension CacheDirectory {
  /// Compares all bytes of an entry with their recorded hashes.
  ///
  /// Changes nothing, and works beside an entry object that records.
  ///
  /// It reads all cached bytes of the file, whatever its stamp says, and waits for the disk. If it
  /// finds damage, it invalidates the stamp.
  ///
  /// - Returns: the version of the entry, and which of its claimed bytes are damaged; nil if there
  ///   is no usable entry.
  /// - Throws: if a file cannot be opened or read.
  public func audit(
    _ key: CacheKey
  ) throws(CacheError) -> (version: ContentVersion, damaged: ExtentSet)? {
    do throws(ErrorNumber) {
      guard case .found(let stored) = try StoredFiles.open(key, in: files) else { return nil }
      let data = try stored.openData()
      var damaged = try damagedExtents(of: stored, in: data)
      if !damaged.isEmpty {
        // Bytes that were stored meanwhile may lie past the first end of the data file.
        let again = try damagedExtents(of: stored, in: data)
        damaged = ExtentSet(damaged.extents.flatMap { again.runs(in: $0) })
      }
      if !damaged.isEmpty, let data { Self.distrust(data) }
      return (stored.header.version, damaged)
    } catch {
      throw CacheError(error, path: path(of: key))
    }
  }

  /// The bytes that the record of an entry claims and for which no claim is true.
  private func damagedExtents(
    of stored: StoredFiles, in data: Descriptor?
  ) throws(ErrorNumber) -> ExtentSet {
    let recovery = try Recovery(
      log: stored.log, header: stored.header, data: data, uncommitted: .verify,
      trustsCommits: false)
    return ExtentSet(recovery.claimed.extents.flatMap { recovery.extents.holes(in: $0) })
  }

  /// Compares all bytes of an entry with their recorded hashes, even those that a COMMIT or a stamp
  /// covers.
  ///
  /// It reads all cached bytes of the file. Without `repairing` it changes nothing, not even the
  /// time of last use, except that it invalidates the stamp of a damaged entry.
  ///
  /// - Parameters:
  ///   - entry: the entry to check.
  ///   - repairing: whether to replace the record by one without the false claims, so that the next
  ///     mount fetches only those bytes. An entry without a valid header or data file is removed. A
  ///     repaired entry counts as used now.
  /// - Returns: the result; nil if there is no record, or one of a later version of httpfs.
  /// - Throws: if a file cannot be opened, read or replaced.
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

  /// Removes an entry, and throws if that fails.
  ///
  /// It also removes the entry's pin. Files that the cache did not write stay. Do not call it while
  /// entries are being created, because it removes the directory that groups entries with the last
  /// of them.
  ///
  /// - Parameter entry: the entry to remove.
  /// - Returns: the number of bytes that its files occupied.
  /// - Throws: if its record cannot be removed; the entry is then unchanged.
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
      // Without a record there may still be files that a crash has left.
      guard error.rawValue == ENOENT else { throw CacheError(error, path: path(of: entry.key)) }
    }
    noteFreed(freed)
    let leftFreed = deleteFiles(of: entry.key)
    noteFreed(leftFreed)
    if isPinned(entry.key) {
      setPinned(false, entry.key)
      try storePin(false, of: entry.key)
    }
    // Fails, as it should, while the directory holds other entries.
    try? SystemCalls.removeDirectory(entry.key.prefixName, in: files.rawValue)
    return freed + leftFreed
  }
}
