public import ExtentRecord
internal import LinuxSystem
import Synchronization

extension CacheDirectory {
  /// The bytes that all entries occupy on the disk.
  ///
  /// The first call counts them, which takes time with many entries. Later calls return that count,
  /// updated by what is stored and removed. ``evict(downTo:decide:)`` counts again.
  public var allocatedByteCount: Int64 {
    if let known = state.withLock({ $0.allocatedByteCount }) { return known }
    return count().reduce(0) { $0 + $1.allocatedByteCount }
  }

  /// How many bytes are missing from the space that must stay free for other programs: 1 GiB, or a
  /// twentieth of a small disk; nil if unknown (`fstatvfs(3)`).
  public var shortageByteCount: Int64? {
    SystemCalls.space(files.rawValue).map { space in
      min(Self.reservedByteCount, space.total / 20) - space.available
    }
  }

  private static let reservedByteCount: Int64 = 1 << 30

  /// Removes whole entries, the least recently used ones first, until all entries together occupy
  /// at most `limit` bytes.
  ///
  /// - Parameters:
  ///   - limit: the number of bytes that may stay.
  ///   - decide: called for each entry that is not pinned when its turn comes, because counting all
  ///     entries first takes time. It either leaves the entry, or removes it with the given
  ///     function under a lock that keeps others from opening it. It should leave open entries:
  ///     their blocks would be freed only when they are closed.
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

  /// Adds to the count of allocated bytes, if they were counted.
  func noteStored(_ byteCount: Int64) {
    state.withLock { state in
      if let known = state.allocatedByteCount { state.allocatedByteCount = known + byteCount }
    }
  }

  /// Subtracts from the count of allocated bytes, if they were counted.
  func noteFreed(_ byteCount: Int64) {
    state.withLock { state in
      if let known = state.allocatedByteCount {
        state.allocatedByteCount = max(0, known - byteCount)
      }
    }
  }

  // MARK: Files

  /// Looks at every entry and stores the sum.
  private func count() -> [StoredEntry] {
    let entries = (try? StoredEntry.all(in: files)) ?? []
    let sum = entries.reduce(0) { $0 + $1.allocatedByteCount }
    state.withLock { $0.allocatedByteCount = sum }
    return entries
  }

  /// Deletes an entry; returns the number of bytes that its files occupied.
  ///
  /// It deletes the record first, so that the files that a crash leaves are not an entry.
  func deleteFiles(of key: CacheKey) -> Int64 {
    endRecording(of: key)
    guard let prefix = try? SystemCalls.openDirectory(key.prefixName, in: files.rawValue),
      let directory = try? SystemCalls.openDirectory(key.restName, in: prefix.rawValue)
    else { return 0 }
    let before = StoredEntry.allocatedByteCount(in: directory)
    try? SystemCalls.unlink(RecordFile.name, in: directory.rawValue)
    removeFiles(in: directory, keeping: nil)
    let after = StoredEntry.allocatedByteCount(in: directory)
    // Fails, as it should, if the directory holds files that the cache did not write.
    try? SystemCalls.removeDirectory(key.restName, in: prefix.rawValue)
    return max(0, before - after)
  }

  /// Removes the files that an entry's record does not name; returns the number of bytes that they
  /// occupied.
  ///
  /// These are data files other than `dataName`, and unfinished records.
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
        // The file stays an orphan until the entry is opened or evicted.
      }
    }
    return freed
  }
}
