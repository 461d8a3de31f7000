import ExtentRecord
import HTTPTransferCore
import LinuxSystem

/// Compares all bytes of entries with their recorded hashes; see ``CacheDirectory/audit(_:)`` and
/// ``CacheDirectory/check(_:repairing:)``.
struct EntryChecker: Sendable {
  let context: CacheContext
  let remover: EntryRemover

  func audit(
    _ key: CacheKey
  ) throws(CacheError) -> (version: ContentVersion, damaged: ExtentSet)? {
    do throws(ErrorNumber) {
      guard case .found(let stored) = try StoredFiles.open(key, in: context.root.files)
      else { return nil }
      let data = try stored.openData()
      var damaged = try damagedExtents(of: stored, in: data)
      if !damaged.isEmpty {
        // Bytes that were stored meanwhile may lie beyond the first end of the data file.
        let again = try damagedExtents(of: stored, in: data)
        damaged = ExtentSet(damaged.extents.flatMap { again.runs(in: $0) })
      }
      if !damaged.isEmpty, let data { DataStamps.invalidateFingerprint(data) }
      return (stored.header.version, damaged)
    } catch {
      throw CacheError(error, path: context.folder(of: key).path)
    }
  }

  /// The bytes that the record of an entry claims and for which no claim is true.
  private func damagedExtents(
    of stored: StoredFiles, in data: Descriptor?
  ) throws(ErrorNumber) -> ExtentSet {
    let recovery = try verified(stored, in: data)
    return ExtentSet(recovery.claimed.extents.flatMap { recovery.extents.holes(in: $0) })
  }

  private func verified(
    _ stored: StoredFiles, in data: Descriptor?
  ) throws(ErrorNumber) -> Recovery {
    try Recovery(
      log: stored.log, header: stored.header, data: data, uncommitted: .verify,
      trustsCommits: false)
  }

  func check(_ key: CacheKey, repairing: Bool) throws(CacheError) -> EntryCheck? {
    if repairing { context.recordings.end(key) }
    let isUseless: Bool
    let result: EntryCheck
    do throws(ErrorNumber) {
      switch try StoredFiles.open(key, in: context.root.files) {
      case .missing, .laterFormat: return nil
      case .damaged:
        result = EntryCheck(claimedByteCount: 0, damagedByteCount: 0, isRecordDamaged: true)
        isUseless = true
      case .found(let stored):
        let data = try stored.openData()
        let recovery = try verified(stored, in: data)
        result = EntryCheck(recovery)
        if result.isDamaged, let data { DataStamps.invalidateFingerprint(data) }
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
      throw CacheError(error, path: context.folder(of: key).path)
    }
    if repairing, isUseless, result.isDamaged { _ = try remover.removeWithPin(key) }
    return result
  }
}
