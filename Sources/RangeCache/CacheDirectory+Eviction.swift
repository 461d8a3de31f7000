public import ExtentRecord
import Synchronization

extension CacheDirectory {
  /// The bytes that all entries occupy on the disk.
  ///
  /// The first call counts them, which takes a while with many entries; later ones return the
  /// count, moved along by what is stored and removed. ``evict(downTo:decide:)`` counts anew.
  public var allocatedByteCount: Int64 {
    if let known = state.withLock({ $0.allocatedByteCount }) { return known }
    return count().reduce(0) { $0 + $1.allocatedByteCount }
  }

  /// How many bytes are missing from what must stay free on the disk, for whatever else uses it: 1 GiB,
  /// or a twentieth of a small disk; nil where that cannot be told (`fstatvfs(3)`).
  public var shortageByteCount: Int64? {
    SystemCalls.space(files.rawValue).map { space in
      min(Self.reservedByteCount, space.total / 20) - space.available
    }
  }

  private static let reservedByteCount: Int64 = 1 << 30

  /// Removes whole entries, those first that were used least recently, until all entries together
  /// occupy at most `limit` bytes.
  ///
  /// - Parameters:
  ///   - limit: the bytes that may stay.
  ///   - decide: asked about each entry that is not pinned when its turn comes, because all are counted
  ///     first, which takes a while: it removes the entry with the function that it is given, under
  ///     whatever lock keeps others from opening it meanwhile, or leaves it. The blocks of an open entry
  ///     would be freed at its closing only.
  /// - Returns: the number of bytes freed.
  @discardableResult
  public func evict(
    downTo limit: Int64, decide: (CacheKey, _ remove: () -> Void) -> Void
  ) -> Int64 {
    let entries = count().sorted { $0.lastUse < $1.lastUse }
    var allocated = entries.reduce(0) { $0 + $1.allocatedByteCount }
    var freed: Int64 = 0
    for entry in entries {
      if allocated <= limit { break }
      if isPinned(entry.key) { continue }
      decide(entry.key) {
        let byteCount = deleteFiles(of: entry.key)
        allocated -= byteCount
        freed += byteCount
      }
    }
    noteFreed(freed)
    return freed
  }

  /// Adds to the count of allocated bytes, if there is one yet.
  func noteStored(_ byteCount: Int64) {
    state.withLock { state in
      if let known = state.allocatedByteCount { state.allocatedByteCount = known + byteCount }
    }
  }

  /// Subtracts from the count of allocated bytes, if there is one yet.
  func noteFreed(_ byteCount: Int64) {
    state.withLock { state in
      if let known = state.allocatedByteCount {
        state.allocatedByteCount = max(0, known - byteCount)
      }
    }
  }

  // MARK: Files

  /// Looks at every entry, and keeps the sum.
  private func count() -> [StoredEntry] {
    let entries = (try? StoredEntry.all(in: files)) ?? []
    let sum = entries.reduce(0) { $0 + $1.allocatedByteCount }
    state.withLock { $0.allocatedByteCount = sum }
    return entries
  }

  /// Deletes an entry; returns the number of bytes that its files occupied.
  ///
  /// The record goes first: whatever a crash leaves then is no entry.
  func deleteFiles(of key: CacheKey) -> Int64 {
    endRecording(of: key)
    guard let prefix = try? SystemCalls.openDirectory(key.prefixName, in: files.rawValue),
      let directory = try? SystemCalls.openDirectory(key.restName, in: prefix.rawValue)
    else { return 0 }
    let before = StoredEntry.allocatedByteCount(in: directory)
    try? SystemCalls.unlink(RecordFile.name, in: directory.rawValue)
    removeFiles(in: directory, keeping: nil)
    let after = StoredEntry.allocatedByteCount(in: directory)
    // Fails, rightly, where the directory holds files that the cache did not write.
    try? SystemCalls.removeDirectory(key.restName, in: prefix.rawValue)
    return max(0, before - after)
  }

  /// Removes what an entry's record does not name; returns the number of bytes that it occupied.
  ///
  /// That is data files other than `dataName`, and records that were never finished.
  @discardableResult
  func removeFiles(in directory: Descriptor, keeping dataName: String?) -> Int64 {
    var freed: Int64 = 0
    for name in (try? SystemCalls.names(in: directory.rawValue)) ?? [] {
      guard name.hasPrefix(RecordFile.dataPrefix) || name.hasPrefix(RecordFile.temporaryPrefix),
        name != dataName
      else { continue }
      let status = try? SystemCalls.status(name, in: directory.rawValue)
      do throws(ErrorNumber) {
        try SystemCalls.unlink(name, in: directory.rawValue)
        freed += status?.allocatedByteCount ?? 0
      } catch {
        // It stays an orphan until the entry is opened or evicted.
      }
    }
    return freed
  }
}
