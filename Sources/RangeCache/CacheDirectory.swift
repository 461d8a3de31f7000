public import ExtentRecord
import Glibc
public import HTTPTransferCore
internal import LinuxSystem
import Synchronization

/// A directory of cache entries.
///
/// One process at a time holds it.
///
/// Layout: `lock`; `v1/files/AB/REST/` for each entry, where `ABREST` is its key in hexadecimal;
/// and `v1/pins/ABREST` for each pinned key. Everything that depends on the format is under `v1`.
/// The entries of a later version are beside it and are never touched.
///
/// Every method may be called from any thread. Calls about one key must not overlap, except for
/// ``evict(downTo:keeping:)``. At most one entry object of a key records: opening, creating,
/// removing or evicting an entry ends the recording of the earlier object.
///
/// Lock order: `state` is a leaf. Code that holds it must not lock or wait.
public final class CacheDirectory: Sendable {
  /// The path as given, without trailing slashes.
  public let path: String

  let files: Descriptor
  /// The directory of this format version.
  let version: Descriptor
  private let lock: DirectoryLock
  let state: Mutex<State>
  /// The identifier of the current boot, which stamps of data files include; nil if the file system
  /// does not maintain the times that stamps need.
  ///
  /// Without it, no stamp is written or trusted.
  let bootID: String?

  /// What is known of the entries.
  struct State {
    /// The recording of each key that has a live entry object.
    var recordings: [CacheKey: Recording] = [:]
    /// The blocks of each data file that an entry object has open, by the file's identity.
    var blocks: [UInt64: DataBlocks] = [:]
    /// Data files with settled blocks that no entry object has open.
    var settledData: Set<UInt64> = []
    /// The number of bytes that all entries occupy; nil until they were counted.
    var allocatedByteCount: Int64?
    /// The keys that are never evicted.
    var pinnedKeys: Set<CacheKey> = []
  }

  /// The directory of the entries of this format version.
  static let versionName = "v1"
  static let filesName = "files"
  static let pinsName = "pins"

  /// Opens the directory for this process alone; creates it (mode 0700) and its parents if needed.
  ///
  /// A process that becomes a daemon must fork before this call, because the lock names the
  /// process.
  ///
  /// - Throws: ``CacheError/Code/inUse(pid:)`` if another process, or another object of this one,
  ///   holds it; ``CacheError/Code/unsafeDirectory(_:)`` if it is a symbolic link, belongs to
  ///   another user, or is accessible to others and holds files that are not a cache's.
  public convenience init(path: String) throws(CacheError) {
    try self.init(path: path, bootID: SystemCalls.bootID())
  }

  /// Like ``init(path:)``, with the given boot identifier.
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
  /// It writes nothing if the record is sound, so it can read a disk that refuses writes.
  /// ``touch(_:)`` marks the entry as used.
  ///
  /// Extents that a COMMIT covers are trusted. The others are read and hashed first, which may take
  /// time after a crash. Claims that proved false are removed from the record. If a stamp shows
  /// that all bytes were as recorded and that the data file was not changed since, nothing needs
  /// verification.
  ///
  /// - Parameters:
  ///   - key: the key of the entry.
  ///   - uncommitted: how to treat extents that no COMMIT covers.
  /// - Returns: nil if there is no entry, or no usable one: garbage, another key's record, a record
  ///   without its data file. ``createEntry(_:version:source:)`` replaces it.
  /// - Throws: if the file system fails, or if no descriptor is free. The state of the entry is
  ///   then unknown.
  public func openEntry(
    _ key: CacheKey, uncommitted: UncommittedExtents = .verify
  ) throws(CacheError) -> CacheEntry? {
    endRecording(of: key)
    do throws(ErrorNumber) {
      return try recover(key, uncommitted: uncommitted)
    } catch {
      // There is no entry, or a name is not the regular file or directory that it should be.
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
      // Leave an entry of a later version untouched.
      if try Recovery.isOfLaterFormat(record) { throw ErrorNumber(rawValue: EPROTONOSUPPORT) }
      return nil
    }
    var header = found.header
    let data = try SystemCalls.openFile(header.dataName, in: directory.rawValue)
    guard try isOwn(data) else { return nil }
    removeFiles(in: directory, keeping: header.dataName)

    // Take the stamp before reading any bytes, because they may be changed at any time.
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
          // Reading is safe on a read-only file system. But nothing must be appended: a COMMIT
          // could cover a refuted claim.
          isReadOnly = true
        } else {
          // A shortage in the process is temporary.
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

  /// Creates an empty entry of `key` and replaces an existing one in one step.
  ///
  /// Descriptors of the old data file stay readable; its blocks are freed when they are closed.
  /// This call does not wait for the disk: the names become durable with the first
  /// ``CacheEntry/syncRecord()``. Until then, a loss of power may remove the whole entry.
  ///
  /// - Parameters:
  ///   - key: the key of the entry.
  ///   - version: the version whose bytes it will hold.
  ///   - source: the URL without credentials, for people; cut at 2,048 bytes.
  ///   - definer: the server that described the version, if there are several; see
  ///     ``CacheEntry/definer``.
  /// - Returns: the entry, without any extent.
  /// - Throws: ``CacheError/Code/invalidArgument`` for a version whose fields are longer than a
  ///   header may be (512 KiB); otherwise the error of the file system.
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

  /// Removes the entry of `key`, if it exists.
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

  /// How many descriptors the process may have open.
  public var descriptorLimit: Int { SystemCalls.descriptorLimit }

  /// Whether there are enough free descriptors to keep files open that no program reads: false once
  /// somewhat less than half of them are in use.
  ///
  /// It is cheap and approximate: the lowest free descriptor tells about how many are in use.
  public var hasSpareDescriptors: Bool {
    guard let used = SystemCalls.lowestFreeDescriptor(files.rawValue) else { return false }
    return used < SystemCalls.descriptorLimit / 2 - 8
  }

  /// Whether there are enough free descriptors to open an entry, write to it and close it at once.
  public var hasBorrowableDescriptors: Bool {
    guard let used = SystemCalls.lowestFreeDescriptor(files.rawValue) else { return false }
    return used < SystemCalls.descriptorLimit - 16
  }

  // MARK: Recordings

  /// Gives a new entry object the right to record under `key`.
  func beginRecording(of key: CacheKey) -> Recording {
    let recording = Recording()
    state.withLock { state in
      state.recordings[key]?.end()
      state.recordings[key] = recording
    }
    return recording
  }

  /// Ends the recording of the object that records under `key`, if any.
  func endRecording(of key: CacheKey) {
    state.withLock { $0.recordings.removeValue(forKey: key)?.end() }
  }

  /// Removes the recording of an entry object that ends.
  func endRecording(_ recording: Recording, of key: CacheKey) {
    state.withLock { state in
      if state.recordings[key] === recording { state.recordings[key] = nil }
    }
  }

  /// Opens the record file of `key` for appending; nil if it is missing or belongs to another entry
  /// object.
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

  /// Replaces a record file by a copy of it, which is on the disk when this returns.
  ///
  /// - Parameters:
  ///   - record: the record file, open.
  ///   - key: the key of its entry.
  ///   - recordCount: the number of records to copy from its log.
  /// - Returns: the copy, open for more records; nil if the file no longer holds that many.
  /// - Throws: the error of the file system. The record is then the old one, or the copy.
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

  /// The current stamp of a data file; nil if the file system cannot show changes.
  func stamp(of data: Descriptor) -> FileStamp? {
    bootID == nil ? nil : SystemCalls.stamp(data.rawValue)
  }

  /// Whether `recorded`, the stamp in a record with the salt `salt`, matches the data file's
  /// current stamp.
  private func isCurrent(_ recorded: UInt64, _ stamp: FileStamp?, salt: UInt64) -> Bool {
    guard recorded != 0, let bootID, let stamp else { return false }
    return stamp.digest(bootID: bootID, salt: salt) == recorded
  }

  /// Invalidates every stamp of a data file whose bytes are wrong though no program has written
  /// them.
  static func distrust(_ data: Descriptor) {
    // Every change of the inode has this effect; this one changes nothing else.
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
      // On a read-only file system the mode stays as it is; the root of the cache protects the
      // directory.
      try? SystemCalls.setPermissions(directory.rawValue, to: 0o700)
    }
    return directory
  }

  /// Waits until the directory entries that lead to the entry of `key` are on the disk.
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

  /// Whether the cache may have written an open file; tightens its mode to 0600.
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
