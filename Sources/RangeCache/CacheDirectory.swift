public import ExtentRecord
import Glibc
public import HTTPTransferCore
import Synchronization

/// A directory of cache entries, held by one process at a time.
///
/// Layout: `lock`, and `v1/files/AB/REST/` for each entry, where `ABREST` is its key in
/// hexadecimal; `v1/pins/ABREST` for each key that is pinned. All that depends on the format lies under `v1`: the entries of a later version lie
/// beside it and are never touched.
///
/// Every method may be called from any thread. Calls about one key must not overlap, apart from
/// ``evict(downTo:keeping:)``, and at most one entry object of a key records: opening, creating,
/// removing or evicting an entry ends the recording of the object that was there before.
///
/// Lock order: `state` is a leaf; nothing that locks or waits is called while it is held.
public final class CacheDirectory: Sendable {
  /// The path as given, without trailing slashes.
  public let path: String

  let files: Descriptor
  /// The directory of this format version.
  let version: Descriptor
  private let lock: DirectoryLock
  let state: Mutex<State>
  /// The running kernel, whose word a stamp of a data file is; nil where the file system does not keep
  /// the times that stamps rely on: then nothing is stamped, and no stamp believed.
  let bootID: String?

  /// What is known of the entries.
  struct State {
    /// The recording of each key that has a live entry object.
    var recordings: [CacheKey: Recording] = [:]
    /// The blocks of each data file that an entry object is open on, by the file's identity.
    var blocks: [UInt64: DataBlocks] = [:]
    /// Data files that no entry object is open on, and whose blocks are settled.
    var settledData: Set<UInt64> = []
    /// The bytes that all entries occupy; nil until they have been counted.
    var allocatedByteCount: Int64?
    /// What is never evicted.
    var pinnedKeys: Set<CacheKey> = []
  }

  /// The directory of the entries of this format version.
  static let versionName = "v1"
  static let filesName = "files"
  static let pinsName = "pins"

  /// Opens the directory for this process alone; creates it (mode 0700) with its parents.
  ///
  /// A process that forks to become a daemon must do so before, since the lock names the process.
  ///
  /// - Throws: ``CacheError/Code/inUse(pid:)`` where another process, or another object of this
  ///   one, holds it; ``CacheError/Code/unsafeDirectory(_:)`` where it is a symbolic link, belongs
  ///   to another user, or is open to others and holds their files.
  public convenience init(path: String) throws(CacheError) {
    try self.init(path: path, bootID: SystemCalls.bootID())
  }

  /// As ``init(path:)``, under a kernel that is called `bootID`.
  init(path: String, bootID: String?) throws(CacheError) {
    var path = path
    while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.path = path
    let directory = try PrivateDirectory.open(path: path, marker: Self.versionName)
    lock = try DirectoryLock(in: directory, path: path)
    let versionPath = path + "/" + Self.versionName
    version = try PrivateDirectory.open(
      Self.versionName, creatingIn: directory, path: versionPath)
    files = try PrivateDirectory.open(
      Self.filesName, creatingIn: version, path: versionPath + "/" + Self.filesName)
    self.bootID = SystemCalls.keepsChangeTimes(files.rawValue) ? bootID : nil
    state = Mutex(State(pinnedKeys: Self.storedPins(in: version)))
  }

  // MARK: Entries

  /// Opens the entry of `key` and checks what it holds.
  ///
  /// Writes nothing where the record is sound: a disk that takes no writes can be read. ``touch(_:)`` marks
  /// the entry as used.
  ///
  /// Extents that a COMMIT covers are believed; the others are read and hashed first, so this may
  /// take a while after a crash. What was proven false is removed from the record. Where a stamp shows
  /// that all bytes were as recorded and the data file has not been changed since, none are left to
  /// be verified.
  ///
  /// - Parameters:
  ///   - key: what the entry is filed under.
  ///   - uncommitted: what to do with extents that no COMMIT covers.
  /// - Returns: nil where there is no entry, or none that can be believed: garbage, another key's
  ///   record, a record without its data file. ``createEntry(_:version:source:)`` replaces it.
  /// - Throws: where the file system fails, or no descriptor is left: then nothing is known.
  public func openEntry(
    _ key: CacheKey, uncommitted: UncommittedExtents = .verify
  ) throws(CacheError) -> CacheEntry? {
    endRecording(of: key)
    do throws(ErrorNumber) {
      return try recover(key, uncommitted: uncommitted)
    } catch {
      // Nothing there, or something that is not the regular file or directory that it should be.
      if [ENOENT, ELOOP, ENOTDIR, EISDIR, ENXIO].contains(error.rawValue) { return nil }
      throw CacheError(error, path: self.path(of: key))
    }
  }

  private func recover(
    _ key: CacheKey, uncommitted: UncommittedExtents
  ) throws(ErrorNumber) -> CacheEntry? {
    let directory = try openDirectory(of: key)
    let record = try SystemCalls.openFile(RecordFile.name, in: directory.rawValue)
    guard try isOwn(record) else { return nil }
    guard let found = try Recovery.header(of: record), found.header.key == key else {
      // What a later version has written is left to it.
      if try Recovery.isOfLaterFormat(record) { throw ErrorNumber(rawValue: EPROTONOSUPPORT) }
      return nil
    }
    var header = found.header
    let data = try SystemCalls.openFile(header.dataName, in: directory.rawValue)
    guard try isOwn(data) else { return nil }
    removeFiles(in: directory, keeping: header.dataName)

    // Before the first look at its bytes: they may be changed at any time.
    let stamp = stamp(of: data)
    let log = LogReader(descriptor: record, start: Int64(found.byteCount), salt: header.salt)
    let recovery = try Recovery(
      log: log, header: header, data: data,
      uncommitted: uncommitted == .verify && !isSettled(header.dataID)
        ? .verifyOnDisk : uncommitted)
    var position = log.start + Int64(recovery.recordCount) * Int64(LogRecord.byteCount)
    var sequence = recovery.recordCount
    var isReadOnly = false
    if recovery.needsRewrite {
      let salt = UInt64.random(in: .min ... .max)
      do throws(ErrorNumber) {
        guard
          let file = try recovery.rewrite(
            log: log, header: header, salt: salt, in: directory)
        else { return nil }
        header.salt = salt
        position = file.position
        sequence = file.sequence
      } catch {
        if error.rawValue == EROFS {
          // Reading is safe on a read-only file system, but nothing must ever be appended: a COMMIT
          // could cover what was refuted.
          isReadOnly = true
        } else {
          // A shortage of the process passes.
          guard ![EMFILE, ENFILE, ENOMEM].contains(error.rawValue),
            let end = try? recovery.cut(log)
          else { throw error }
          (position, sequence) = end
        }
      }
    }
    header.version.completeLength =
      recovery.summary.completeLength ?? header.version.completeLength
    let isStamped = uncommitted != .discard && isCurrent(recovery.stamp, stamp, salt: header.salt)
    let entry = CacheEntry(
      directory: self, header: header, extents: recovery.extents,
      believed: isStamped ? ExtentSet() : recovery.believed,
      fetchedByteCount: recovery.summary.fetchedByteCount,
      uncommittedByteCount: recovery.uncommittedByteCount, data: data, stamp: stamp,
      isStamped: isStamped, checksumMark: recovery.checksumMark, record: nil, position: position,
      sequence: sequence)
    if isReadOnly { endRecording(of: key) }
    if uncommitted == .discard { noteLoss(inData: header.dataID) }
    return entry
  }

  /// Creates the entry of `key`, empty; what was there is replaced in one step.
  ///
  /// Descriptors of the old data file stay readable; its blocks are freed when they are closed.
  /// Does not wait for the disk: the names become durable with the first ``CacheEntry/syncRecord()``,
  /// and until then a loss of power may take the entry as a whole.
  ///
  /// - Parameters:
  ///   - key: what to file the entry under.
  ///   - version: the version whose bytes it will hold.
  ///   - source: the URL without credentials, for people; cut at 2,048 bytes.
  ///   - definer: the server of several that has described the version; see ``CacheEntry/definer``.
  /// - Returns: the entry, without any extent.
  /// - Throws: ``CacheError/Code/invalidArgument`` for a version whose fields are longer than a
  ///   header may be (512 KiB); otherwise what the file system says.
  public func createEntry(
    _ key: CacheKey, version: ContentVersion, source: String, definer: String? = nil
  ) throws(CacheError) -> CacheEntry {
    let header = RecordHeader(
      salt: .random(in: .min ... .max), dataID: .random(in: .min ... .max), key: key,
      version: version, source: source, definer: definer)
    guard (version.completeLength ?? 0) >= 0, let encoded = header.encoded() else {
      throw CacheError(code: .invalidArgument, path: path(of: key))
    }
    endRecording(of: key)
    let directory = try makeDirectory(of: key)
    let entry: CacheEntry
    do throws(ErrorNumber) {
      let data = try SystemCalls.createFile(header.dataName, in: directory.rawValue)
      do throws(ErrorNumber) {
        let file = try RecordFile.replace(
          header: encoded, salt: header.salt, in: directory, isDurable: false)
        entry = CacheEntry(
          directory: self, header: header, extents: ExtentSet(), believed: ExtentSet(),
          fetchedByteCount: 0,
          uncommittedByteCount: 0, data: data, isNew: true, stamp: stamp(of: data),
          isStamped: false, record: file.descriptor, position: file.position,
          sequence: file.sequence)
      } catch {
        try? SystemCalls.unlink(header.dataName, in: directory.rawValue)
        throw error
      }
    } catch {
      throw CacheError(error, path: path(of: key))
    }
    let freed = removeFiles(in: directory, keeping: header.dataName)
    noteFreed(freed)
    return entry
  }

  /// Removes the entry of `key`, if there is one.
  ///
  /// Its open descriptors stay readable.
  public func removeEntry(_ key: CacheKey) {
    noteFreed(deleteFiles(of: key))
  }

  /// Marks the entry of `key` as used now, for the order of eviction.
  public func touch(_ key: CacheKey) {
    guard let directory = try? openDirectory(of: key) else { return }
    try? SystemCalls.touch(directory.rawValue)
  }

  /// Whether there are descriptors for files that nobody reads: not, once somewhat less than half of
  /// them are in use.
  ///
  /// Not exact, and cheap: about so many are in use as the lowest free one says.
  public var hasSpareDescriptors: Bool {
    guard let used = SystemCalls.lowestFreeDescriptor(files.rawValue) else { return false }
    return used < SystemCalls.descriptorLimit / 2 - 8
  }

  /// Whether there are descriptors for an entry that is opened, written to and closed again at once.
  public var hasBorrowableDescriptors: Bool {
    guard let used = SystemCalls.lowestFreeDescriptor(files.rawValue) else { return false }
    return used < SystemCalls.descriptorLimit - 16
  }

  // MARK: Recordings

  /// Gives the right to record under `key` to a new entry object.
  func beginRecording(of key: CacheKey) -> Recording {
    let recording = Recording()
    state.withLock { state in
      state.recordings[key]?.end()
      state.recordings[key] = recording
    }
    return recording
  }

  /// Lets the object that records under `key`, if there is one, record no more.
  func endRecording(of key: CacheKey) {
    state.withLock { $0.recordings.removeValue(forKey: key)?.end() }
  }

  /// Forgets the recording of an entry object that ends.
  func endRecording(_ recording: Recording, of key: CacheKey) {
    state.withLock { state in
      if state.recordings[key] === recording { state.recordings[key] = nil }
    }
  }

  /// Opens the record file of `key` for appending; nil where it is gone or another's.
  func openRecord(of key: CacheKey, salt: UInt64) throws(CacheError) -> Descriptor? {
    do throws(ErrorNumber) {
      let directory = try openDirectory(of: key)
      let record = try SystemCalls.openFile(RecordFile.name, in: directory.rawValue)
      let isSame = try Recovery.header(of: record)?.header.salt == salt
      return isSame ? record : nil
    } catch {
      if error.rawValue == ENOENT { return nil }
      throw CacheError(error, path: path(of: key))
    }
  }

  /// Puts a copy of a record file, which is on the disk when this returns, in its place.
  ///
  /// - Parameters:
  ///   - record: the record file, open.
  ///   - key: what its entry is filed under.
  ///   - recordCount: how many records its log has; what is behind them is left out.
  /// - Returns: the copy, open for more; nil where the file no longer holds that many.
  /// - Throws: what the file system says; the old record then is in place, or the copy.
  func copyRecord(
    _ record: Descriptor, of key: CacheKey, recordCount: UInt64
  ) throws(ErrorNumber) -> Descriptor? {
    guard let found = try Recovery.header(of: record), let header = found.header.encoded(),
      header.count == found.byteCount
    else { return nil }
    let salt = found.header.salt
    let log = LogReader(descriptor: record, start: Int64(found.byteCount), salt: salt)
    guard try log.read({ _, _ in }).recordCount >= recordCount else { return nil }
    let directory = try openDirectory(of: key)
    return try RecordFile.replace(header: header, salt: salt, in: directory, isDurable: true) {
      (file) throws(ErrorNumber) in
      _ = try log.read { (sequence, record) throws(ErrorNumber) in
        if sequence <= recordCount { try file.append(record) }
      }
    }.descriptor
  }

  // MARK: Stamps

  /// How a data file is now; nil where nothing would show that it is changed.
  func stamp(of data: Descriptor) -> FileStamp? {
    bootID == nil ? nil : SystemCalls.stamp(data.rawValue)
  }

  /// Whether `recorded`, the stamp of a record whose salt is `salt`, is that of a data file as it is now.
  private func isCurrent(_ recorded: UInt64, _ stamp: FileStamp?, salt: UInt64) -> Bool {
    guard recorded != 0, let bootID, let stamp else { return false }
    return stamp.digest(bootID: bootID, salt: salt) == recorded
  }

  /// Lets no stamp of a data file hold any more, since its bytes are not what they should be though
  /// nobody has written them.
  static func distrust(_ data: Descriptor) {
    // Every change of the inode will do; this one changes nothing else.
    try? SystemCalls.setPermissions(data.rawValue, to: 0o600)
  }

  // MARK: Files

  /// The path of an entry's directory, for people.
  func path(of key: CacheKey) -> String {
    [path, Self.versionName, Self.filesName, key.prefixName, key.restName]
      .joined(separator: "/")
  }

  func openDirectory(of key: CacheKey) throws(ErrorNumber) -> Descriptor {
    let prefix = try openPrivate(key.prefixName, in: files)
    return try openPrivate(key.restName, in: prefix)
  }

  /// Opens a directory of the cache; tightens its mode to 0700.
  private func openPrivate(
    _ name: String, in parent: Descriptor
  ) throws(ErrorNumber) -> Descriptor {
    let directory = try SystemCalls.openDirectory(name, in: parent.rawValue)
    if try SystemCalls.status(directory.rawValue).permissions & 0o077 != 0 {
      // On a read-only file system they stay as they are, behind the root of the cache.
      try? SystemCalls.setPermissions(directory.rawValue, to: 0o700)
    }
    return directory
  }

  /// Waits until the names that lead to the entry of `key` are on the disk.
  func syncNames(of key: CacheKey) throws(ErrorNumber) {
    let prefix = try SystemCalls.openDirectory(key.prefixName, in: files.rawValue)
    let entry = try SystemCalls.openDirectory(key.restName, in: prefix.rawValue)
    for directory in [entry.rawValue, prefix.rawValue, files.rawValue] {
      try SystemCalls.sync(directory)
    }
  }

  private func makeDirectory(of key: CacheKey) throws(CacheError) -> Descriptor {
    let path = path(of: key)
    let prefix = try PrivateDirectory.open(key.prefixName, creatingIn: files, path: path)
    return try PrivateDirectory.open(key.restName, creatingIn: prefix, path: path)
  }

  /// Whether an open file is one that the cache may have written; tightens its mode to 0600.
  private func isOwn(_ file: Descriptor) throws(ErrorNumber) -> Bool {
    let status = try SystemCalls.status(file.rawValue)
    guard status.isRegularFile, status.owner == SystemCalls.effectiveUserID else { return false }
    if status.permissions & 0o077 != 0 {
      do throws(ErrorNumber) {
        try SystemCalls.setPermissions(file.rawValue, to: 0o600)
      } catch {
        guard error.rawValue == EROFS else { throw error }
      }
    }
    return true
  }
}
