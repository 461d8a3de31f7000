internal import ExtentRecord
internal import Synchronization

/// Which files and versions use which cache entries, as a pure value.
///
/// An eviction asks the file of an entry first, and no entry is opened while it is being removed.
/// Files and versions are held weakly.
struct EntryUsers {
  private struct Usage {
    weak var file: (any EntryOwner)?
    /// The version whose bytes the entry holds: the last one that opened it.
    weak var version: (any EntryHolder)?
  }

  private var usages: [CacheKey: Usage] = [:]
  /// The number of entries at which those of freed files are removed.
  private var pruningCount = 1024
  /// The keys of entries that are being opened for the first time, and of those being removed; no
  /// key is in both.
  private var looks: Set<CacheKey> = []
  private var removals: Set<CacheKey> = []

  /// Records that the entry of `key` holds the bytes of `version`, a version of `file`.
  mutating func note(_ key: CacheKey, of file: any EntryOwner, _ version: any EntryHolder) {
    if usages.count >= pruningCount {
      usages = usages.filter { $0.value.file != nil }
      pruningCount = max(1024, 2 * usages.count)
    }
    usages[key] = Usage(file: file, version: version)
  }

  /// Does the same as ``note(_:of:_:)`` before the entry is created.
  ///
  /// - Returns: false, without an effect, while the old entry is being removed.
  mutating func recordNew(
    _ key: CacheKey, of file: any EntryOwner, _ version: any EntryHolder
  ) -> Bool {
    guard !removals.contains(key) else { return false }
    note(key, of: file, version)
    return true
  }

  /// The version whose bytes the entry of `key` holds.
  func holder(of key: CacheKey) -> (any EntryHolder)? { usages[key]?.version }

  /// Forgets the entry of `key`, which has been removed.
  mutating func forget(_ key: CacheKey) { usages[key] = nil }

  /// Keeps the entry of `key` from eviction while it is opened for the first time.
  ///
  /// - Returns: false if it is being removed, or opened already.
  mutating func beginLook(_ key: CacheKey) -> Bool {
    !removals.contains(key) && looks.insert(key).inserted
  }

  mutating func endLook(_ key: CacheKey) { looks.remove(key) }

  /// How an eviction treats an entry.
  enum Removal {
    /// Leave it: it is being opened or removed.
    case no
    /// Let the file that uses it remove it.
    case byFile(any EntryOwner)
    /// Remove it, then call `endRemoval`.
    case free
  }

  mutating func beginRemoval(_ key: CacheKey) -> Removal {
    if looks.contains(key) { return .no }
    if let file = usages[key]?.file { return .byFile(file) }
    return removals.insert(key).inserted ? .free : .no
  }

  mutating func endRemoval(_ key: CacheKey) { removals.remove(key) }
}

/// ``EntryUsers`` in groups by key with a lock each: threads that open many entries seldom meet.
struct EntryUserTable: Sendable {
  private final class Group: Sendable {
    let users = Mutex(EntryUsers())
  }

  private let groups = (0..<32).map { _ in Group() }

  /// Calls `body` with the users of a group of entries, `key` among them, under its lock.
  func with<Result>(_ key: CacheKey, _ body: (inout EntryUsers) -> sending Result)
    -> sending Result
  {
    // A key is a hash, so each of its bytes is random.
    groups[Int(key.bytes[0]) % groups.count].users.withLock { body(&$0) }
  }
}
