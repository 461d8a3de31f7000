import ExtentRecord
import Glibc
import LinuxSystem
import Synchronization

/// The keys of entries that are never evicted, whatever the size limit and however full the disk.
///
/// A pin is an empty file in `v1/pins`, named by its key. It belongs to the key, not to the bytes:
/// it may exist before the entry, and it stays when the version changes.
final class PinnedKeys: Sendable {
  private let root: CacheRoot
  private let keys: Mutex<Set<CacheKey>>

  private static let directoryName = "pins"

  init(_ root: CacheRoot) {
    self.root = root
    keys = Mutex(Self.stored(in: root.version))
  }

  /// The pinned keys; from memory.
  var all: Set<CacheKey> { keys.withLock { $0 } }

  func contains(_ key: CacheKey) -> Bool { keys.withLock { $0.contains(key) } }

  /// Pins or unpins a key in this process.
  func set(_ isPinned: Bool, _ key: CacheKey) {
    keys.withLock { keys in
      if isPinned { keys.insert(key) } else { keys.remove(key) }
    }
  }

  /// Stores on the disk whether `key` is pinned, for later mounts; waits for the disk.
  func store(_ isPinned: Bool, _ key: CacheKey) throws(CacheError) {
    let version = root.version.rawValue
    do throws(ErrorNumber) {
      if isPinned {
        _ = try SystemCalls.makeDirectory(Self.directoryName, in: version)
        let pins = try SystemCalls.openDirectory(Self.directoryName, in: version)
        _ = try SystemCalls.openOrCreateFile(key.hex, in: pins.rawValue)
        try SystemCalls.sync(pins.rawValue)
        try SystemCalls.sync(version)
      } else {
        let pins = try SystemCalls.openDirectory(Self.directoryName, in: version)
        try SystemCalls.unlink(key.hex, in: pins.rawValue)
        try SystemCalls.sync(pins.rawValue)
      }
    } catch {
      // A missing pin need not be removed.
      if error.rawValue == ENOENT, !isPinned { return }
      throw CacheError(
        error, path: "\(root.path)/\(CacheRoot.versionName)/\(Self.directoryName)/\(key.hex)")
    }
  }

  /// The keys with pins below the directory `v1`; other names are ignored.
  static func stored(in version: Descriptor) -> Set<CacheKey> {
    guard let pins = try? SystemCalls.openDirectory(directoryName, in: version.rawValue),
      let names = try? SystemCalls.names(in: pins.rawValue)
    else { return [] }
    return Set(
      names.compactMap {
        CacheKey(prefix: String($0.prefix(2)), rest: String($0.dropFirst(2)))
      })
  }
}
