public import ExtentRecord
import Glibc
internal import LinuxSystem
import Synchronization

/// Pins protect keys from eviction, whatever the size limit and however full the disk.
///
/// A pin is an empty file in `v1/pins`, named by its key. It belongs to the key, not to the bytes:
/// it may exist before the entry, and it stays when the version changes.
extension CacheDirectory {
  /// The pinned keys; from memory.
  public var pinnedKeys: Set<CacheKey> { state.withLock { $0.pinnedKeys } }

  public func isPinned(_ key: CacheKey) -> Bool { state.withLock { $0.pinnedKeys.contains(key) } }

  /// Pins or unpins a key in this process; ``storePin(_:of:)`` makes that durable.
  public func setPinned(_ isPinned: Bool, _ key: CacheKey) {
    state.withLock { state in
      if isPinned { state.pinnedKeys.insert(key) } else { state.pinnedKeys.remove(key) }
    }
  }

  /// Stores on the disk whether `key` is pinned, for later mounts; waits for the disk.
  ///
  /// Calls about one key must not overlap.
  ///
  /// - Throws: the error of the file system; only this process then knows of the change.
  public func storePin(_ isPinned: Bool, of key: CacheKey) throws(CacheError) {
    let path = [path, Self.versionName, Self.pinsName].joined(separator: "/")
    do throws(ErrorNumber) {
      if isPinned {
        _ = try SystemCalls.makeDirectory(Self.pinsName, in: version.rawValue)
        let pins = try SystemCalls.openDirectory(Self.pinsName, in: version.rawValue)
        _ = try SystemCalls.openOrCreateFile(key.hex, in: pins.rawValue)
        try SystemCalls.sync(pins.rawValue)
        try SystemCalls.sync(version.rawValue)
      } else {
        let pins = try SystemCalls.openDirectory(Self.pinsName, in: version.rawValue)
        try SystemCalls.unlink(key.hex, in: pins.rawValue)
        try SystemCalls.sync(pins.rawValue)
      }
    } catch {
      // A missing pin need not be removed.
      if error.rawValue == ENOENT, !isPinned { return }
      throw CacheError(error, path: path + "/" + key.hex)
    }
  }

  /// The keys with pins below the directory `v1`; other names are ignored.
  static func storedPins(in version: Descriptor) -> Set<CacheKey> {
    guard let pins = try? SystemCalls.openDirectory(pinsName, in: version.rawValue),
      let names = try? SystemCalls.names(in: pins.rawValue)
    else { return [] }
    return Set(
      names.compactMap {
        CacheKey(prefix: String($0.prefix(2)), rest: String($0.dropFirst(2)))
      })
  }
}
