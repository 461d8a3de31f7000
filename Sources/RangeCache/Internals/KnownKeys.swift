import ExtentRecord
import Glibc
import LinuxSystem
import Synchronization

/// The keys that have an entry, as far as the directories that group them were read.
///
/// A first `ls -l` asks for thousands of entries that do not exist. One look at a group answers for
/// all of its keys, and the others need no thread that may wait for the disk. No other process adds
/// entries.
///
/// Its lock is a leaf.
final class KnownKeys: Sendable {
  private struct Group {
    /// Whether the directory was read.
    var isRead = false
    /// A part of each key that has an entry, or had one.
    var keys: Set<UInt64> = []
  }

  private let root: CacheRoot
  /// By the first byte of the keys.
  private let groups = Mutex<[UInt8: Group]>([:])

  init(_ root: CacheRoot) { self.root = root }

  /// Whether `key` certainly has no entry; never waits for the disk.
  func lacks(_ key: CacheKey) -> Bool {
    groups.withLock { groups in
      guard let group = groups[key.bytes[0]], group.isRead else { return false }
      return !group.keys.contains(Self.part(of: key))
    }
  }

  /// Reads the directory of the group of `key`, unless that was done before; may wait for the disk.
  func readGroup(of key: CacheKey) {
    let group = key.bytes[0]
    guard groups.withLock({ $0[group]?.isRead != true }),
      let names = try? names(in: key.prefixName)
    else { return }
    let found = names.compactMap { CacheKey(prefix: key.prefixName, rest: $0) }.map(Self.part)
    groups.withLock {
      // Entries may have been created meanwhile.
      $0[group, default: Group()].keys.formUnion(found)
      $0[group]?.isRead = true
    }
  }

  private func names(in group: String) throws(ErrorNumber) -> [String] {
    do throws(ErrorNumber) {
      let directory = try SystemCalls.openDirectory(group, in: root.files.rawValue)
      return try SystemCalls.names(inFresh: directory.rawValue)
    } catch {
      guard error.rawValue == ENOENT else { throw error }
      return []
    }
  }

  /// Records that an entry is about to be created.
  func recordCreation(of key: CacheKey) {
    groups.withLock {
      _ = $0[key.bytes[0], default: Group()].keys.insert(Self.part(of: key))
    }
  }

  private static func part(of key: CacheKey) -> UInt64 {
    key.bytes[1...8].reduce(0) { $0 << 8 | UInt64($1) }
  }
}
