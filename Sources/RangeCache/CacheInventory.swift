import ExtentRecord
import Glibc
import HTTPTransferCore

/// A look at a cache directory that takes no lock and changes nothing, while a mount may use it.
///
/// Each answer is of the moment; entries may come and go between two of them.
public struct CacheInventory: Sendable {
  /// The path as given.
  public let path: String

  private let root: Descriptor
  private let version: Descriptor
  private let files: Descriptor

  /// Opens a cache directory that exists.
  ///
  /// - Throws: ``CacheError/Code/notACache`` where there is none;
  ///   ``CacheError/Code/unsafeDirectory(_:)`` where it is a symbolic link or another user's.
  public init(path: String) throws(CacheError) {
    self.path = path
    root = try PrivateDirectory.openExisting(path, in: AT_FDCWD, path: path)
    version = try PrivateDirectory.openExisting(
      CacheDirectory.versionName, in: root.rawValue, path: path)
    files = try PrivateDirectory.openExisting(
      CacheDirectory.filesName, in: version.rawValue, path: path)
  }

  /// The process that holds the directory; nil where none does.
  ///
  /// By what the kernel tells of locks (`/proc/locks`): a lock of our own, however short, could keep
  /// a mount from starting.
  public var holder: Int32? {
    guard
      let lock = try? SystemCalls.open(
        DirectoryLock.name, in: root.rawValue, flags: O_RDONLY | O_NONBLOCK),
      let processID = DirectoryLock.processID(in: lock),
      DirectoryLock.isHeld(lock, by: processID)
    else { return nil }
    return processID
  }

  /// Every entry, those first that were used last; reads directories only.
  ///
  /// Also those that cannot be used: see ``head(of:)``.
  public func entries() throws(CacheError) -> [StoredEntry] {
    do throws(ErrorNumber) {
      return try StoredEntry.all(in: files).sorted { $1.lastUse < $0.lastUse }
    } catch {
      throw CacheError(error, path: path)
    }
  }

  /// The names of the entries that are pinned, see ``StoredEntry/name``; there may be pins of files
  /// that nothing is cached of.
  public var pinnedNames: Set<String> {
    Set(CacheDirectory.storedPins(in: version).map(\.hex))
  }

  /// Reads the header of an entry's record.
  public func head(of entry: StoredEntry) throws(CacheError) -> StoredHead {
    switch try open(entry) {
    case .found(let files):
      .readable(source: files.header.source, version: files.header.version)
    case .damaged: .damaged
    case .laterFormat: .laterFormat
    case .missing: .missing
    }
  }

  /// How much of a file an entry holds.
  public struct Presence: Sendable, Equatable {
    /// The bytes of the extents that are claimed and that the data file is long enough for.
    public let byteCount: Int64
    /// The complete length of the file in bytes, as recorded last; nil where it is unknown.
    public let completeLength: Int64?
  }

  /// Reads an entry's record as a whole, and none of the cached bytes.
  ///
  /// - Returns: what the record claims; nil where there is none that can be read.
  public func presence(of entry: StoredEntry) throws(CacheError) -> Presence? {
    guard case .found(let files) = try open(entry) else { return nil }
    do throws(ErrorNumber) {
      // Twice: what comes late, a complete length, decides about what came early.
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
  public func path(of entry: StoredEntry) -> String {
    [
      path, CacheDirectory.versionName, CacheDirectory.filesName, entry.key.prefixName,
      entry.key.restName,
    ].joined(separator: "/")
  }
}
