internal import Dispatch
internal import ExtentRecord
internal import Glibc
internal import Logging
internal import RangeCache
internal import Synchronization

/// A file that has a cache entry.
protocol EntryOwner: AnyObject, Sendable {
  /// Removes the cache entry by calling `remove`, unless it is being read or fetched.
  ///
  /// - Returns: whether the entry was removed.
  @discardableResult
  func removeEntryIfUnused(_ remove: () -> Void) -> Bool
}

/// A version that has a cache entry, or had one.
protocol EntryHolder: AnyObject, Sendable {
  /// The version's file.
  var entryOwner: any EntryOwner { get }

  /// Whether it is being read or fetched, and must not be evicted.
  var isInUse: Bool { get }

  /// Marks all bytes of the entry as absent, because it is about to be removed.
  ///
  /// - Returns: false if the file is being read or fetched; then the entry must stay.
  func forgetEntryIfUnused() -> Bool
}

/// Keeps the cache within its limit, and the disk under it from filling up.
///
/// It evicts unused entries, the least recently used ones first.
///
/// Lock order: `users` and `usedKeys` are leaves. Files are asked without them.
final class CacheEvictor: Sendable {
  private let context: MountContext
  private let users = EntryUserTable()
  /// The entries that were used, and must be marked as such.
  private let usedKeys = Mutex<Set<CacheKey>>([])
  /// Whether the disk under the cache has less free space than it must keep.
  private let lacksRoom = Atomic<Bool>(false)
  /// How many bytes have been stored since the last check of the free space.
  private let unweighedByteCount = Atomic<Int64>(0)

  init(context: MountContext) { self.context = context }

  // MARK: Users

  /// Records that the entry of `key` holds the bytes of `version`: eviction asks its file first.
  func note(_ key: CacheKey, of file: any EntryOwner, _ version: any EntryHolder) {
    users.with(key) { $0.note(key, of: file, version) }
  }

  /// Does the same as ``note(_:of:_:)`` before the entry is created, once no eviction is removing
  /// the old one.
  ///
  /// Call it on a thread that may wait for the disk.
  func recordNew(_ key: CacheKey, of file: any EntryOwner, _ version: any EntryHolder) {
    while !users.with(key, { $0.recordNew(key, of: file, version) }) { usleep(2000) }
  }

  /// The version whose bytes the entry of `key` holds.
  func holder(of key: CacheKey) -> (any EntryHolder)? { users.with(key) { $0.holder(of: key) } }

  /// Forgets the entry of `key`, which has been removed.
  func forget(_ key: CacheKey) { users.with(key) { $0.forget(key) } }

  /// Keeps the entry of `key` from eviction while it is opened for the first time, until
  /// ``endLook(_:of:_:)``.
  ///
  /// - Returns: false if the entry is being removed and must not be opened.
  func beginLook(_ key: CacheKey) -> Bool { users.with(key) { $0.beginLook(key) } }

  /// Ends a look, and records the version whose bytes the entry holds, if it has found one.
  func endLook(_ key: CacheKey, of file: any EntryOwner, _ version: (any EntryHolder)?) {
    users.with(key) { users in
      if let version { users.note(key, of: file, version) }
      users.endLook(key)
    }
  }

  // MARK: Usage

  /// Marks the entry of `key` as used, for the order of eviction; later, because that writes to the
  /// disk.
  func recordUse(of key: CacheKey) {
    let isFirst = usedKeys.withLock { keys in
      keys.insert(key)
      return keys.count == 1
    }
    if isFirst { context.diskQueue.async { [self] in markUsed() } }
  }

  /// Marks the used entries on disk; waits for the disk.
  func markUsed() {
    let keys = usedKeys.withLock { keys in
      defer { keys = [] }
      return keys
    }
    for key in keys { context.cache.touch(key) }
  }

  // MARK: Capacity

  /// Whether the disk under the cache has less free space than it must keep.
  var isDiskShort: Bool { lacksRoom.load(ordering: .relaxed) }

  /// How many bytes are stored between checks of the disk's free space; beside that, a check costs
  /// almost no time.
  private static let weighedByteCount: Int64 = 8 << 20

  /// Records bytes that were stored in the cache; call it on a thread that may wait for the
  /// disk.
  func recordStored(_ byteCount: Int64) {
    let sum = unweighedByteCount.add(byteCount, ordering: .relaxed).newValue
    guard sum >= Self.weighedByteCount else { return }
    unweighedByteCount.store(0, ordering: .relaxed)
    weighRoom()
  }

  private func weighRoom() {
    lacksRoom.store((context.cache.shortageByteCount ?? 0) > 0, ordering: .relaxed)
  }

  // MARK: Eviction

  /// How many bytes are freed when the disk under the cache is full.
  private static let roomByteCount: Int64 = 64 << 20

  /// Shrinks the cache to its limit, on the disk queue.
  func trim() { context.diskQueue.async { [self] in enforceLimit() } }

  /// Shrinks the cache to its limit; waits for the disk.
  func enforceLimit() {
    let shortage = max(0, context.cache.shortageByteCount ?? 0)
    lacksRoom.store(shortage > 0, ordering: .relaxed)
    guard context.cacheByteLimit != nil || shortage > 0 else { return }
    let allocated = context.cache.allocatedByteCount
    let limit = min(context.cacheByteLimit ?? .max, max(0, allocated - shortage))
    if allocated > limit { evict(downTo: limit) }
    weighRoom()
  }

  /// Evicts unused entries, because the disk is full.
  ///
  /// - Returns: whether anything could be evicted.
  func makeRoom() -> Bool {
    evict(downTo: max(0, context.cache.allocatedByteCount - Self.roomByteCount)) > 0
  }

  @discardableResult
  private func evict(downTo limit: Int64) -> Int64 {
    markUsed()
    let freed = context.cache.evict(downTo: limit) { key, remove in
      // Asked for each entry in turn: counting the entries takes a while, and files are opened
      // meanwhile.
      switch users.with(key, { $0.beginRemoval(key) }) {
      case .no: break
      case .byFile(let file): file.removeEntryIfUnused(remove)
      case .free:
        remove()
        users.with(key) { $0.endRemoval(key) }
      }
    }
    if freed > 0 {
      context.logger.info("evicted from the cache", metadata: ["bytes": "\(freed)"])
    }
    return freed
  }
}
