import ExtentRecord
import Glibc
import HTTPTransferCore
import LinuxSystem

/// Reads a cache directory without a lock and without changes, also while a mount uses it.
///
/// Each result is a snapshot; entries may be added or removed between two calls.
package struct CacheInventory: Sendable {
  /// The path as given.
  package let path: String

  private let root: Descriptor
  private let version: Descriptor
  private let files: Descriptor

  /// Opens an existing cache directory.
  ///
  /// - Throws: ``CacheError/Code/notACache`` if there is none;
  ///   ``CacheError/Code/unsafeDirectory(_:)`` if it is a symbolic link or belongs to another user.
  package init(path: String) throws(CacheError) {
    self.path = path
    root = try PrivateDirectory.openExisting(path, in: AT_FDCWD, path: path)
    version = try PrivateDirectory.openExisting(
      CacheRoot.versionName, in: root.rawValue, path: path)
    files = try PrivateDirectory.openExisting(
      CacheRoot.filesName, in: version.rawValue, path: path)
  }

  /// The process that holds the directory; nil if none.
  ///
  /// It reads the kernel's list of locks (`/proc/locks`): a lock taken here, however short, could
  /// keep a mount from starting.
  package var holder: Int32? {
    guard
      let lock = try? SystemCalls.open(
        DirectoryLock.name, in: root.rawValue, flags: O_RDONLY | O_NONBLOCK),
      let processID = DirectoryLock.processID(in: lock),
      DirectoryLock.isHeld(lock, by: processID)
    else { return nil }
    return processID
  }

  /// Every entry, the most recently used ones first; reads directories only.
  ///
  /// It includes entries that cannot be used: see ``head(of:)``.
  package func entries() throws(CacheError) -> [StoredEntry] {
    do throws(ErrorNumber) {
      return try StoredEntry.all(in: files).sorted { $1.lastUse < $0.lastUse }
    } catch {
      throw CacheError(error, path: path)
    }
  }

  /// The names of the pinned entries, see ``StoredEntry/name``; files without cached bytes may be
  /// pinned too.
  package var pinnedNames: Set<String> {
    Set(PinnedKeys.stored(in: version).map(\.hex))
  }

  /// Reads the header of an entry's record.
  package func head(of entry: StoredEntry) throws(CacheError) -> StoredHead {
    switch try open(entry) {
    case .found(let files):
      .readable(source: files.header.source, version: files.header.version)
    case .damaged: .damaged
    case .laterFormat: .laterFormat
    case .missing: .missing
    }
  }

  /// How much of a file an entry holds.
  package struct Presence: Sendable, Equatable {
    /// The number of bytes in claimed extents within the data file's length.
    package let byteCount: Int64
    /// The complete length of the file in bytes, as recorded last; nil if unknown.
    package let completeLength: Int64?
  }

  /// Reads an entry's whole record, but none of the cached bytes.
  ///
  /// - Returns: the presence that the record claims; nil if there is no readable record.
  package func presence(of entry: StoredEntry) throws(CacheError) -> Presence? {
    guard case .found(let files) = try open(entry) else { return nil }
    do throws(ErrorNumber) {
      // Read the records twice: a late record, a complete length, decides about earlier ones.
      var summary = LogSummary()
      _ = try files.log.read { (_, record) throws(ErrorNumber) in summary.add(record) }
      let completeLength = summary.completeLength ?? files.header.version.completeLength
      let dataByteCount =
        try files.openData().map { (data) throws(ErrorNumber) in
          try SystemCalls.status(data.rawValue).byteCount
        } ?? 0
      let limit = min(dataByteCount, completeLength ?? .max)
      var extents = ExtentSet()
      _ = try files.log.read { (_, record) throws(ErrorNumber) in
        guard case .extent(let offset, let byteCount, _) = record, offset + byteCount <= limit
        else { return }
        extents.insert(offset..<(offset + byteCount))
      }
      return Presence(byteCount: extents.byteCount, completeLength: completeLength)
    } catch {
      throw CacheError(error, path: path(of: entry))
    }
  }

  private func open(_ entry: StoredEntry) throws(CacheError) -> StoredFiles.Opening {
    do throws(ErrorNumber) {
      return try StoredFiles.open(entry.key, in: files)
    } catch {
      throw CacheError(error, path: path(of: entry))
    }
  }

  /// The path of an entry's directory, for people.
  package func path(of entry: StoredEntry) -> String {
    EntryFolder.path(of: entry.key, in: path)
  }
}
