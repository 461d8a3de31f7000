internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import LinuxSystem

/// A download to an incomplete file.
///
/// The file `NAME.httpfs-part` contains the bytes. `NAME.httpfs-part.record` tells which version
/// they belong to, and which of them are present.
///
/// The record has the format of the cache's (`docs/CACHE-FORMAT.md`): a header with URL and
/// version, then a log of extents with their hashes. So a crash at any moment costs only the bytes
/// in flight. The writer holds an exclusive `flock` on the file of the bytes.
///
/// `@unchecked Sendable`: one thread at a time uses it, see ``BodySink``. Only ``DataSync`` is used
/// concurrently, and it only holds descriptors.
final class PartialFile: @unchecked Sendable {
  /// The bytes that an earlier run has left.
  struct Remains {
    var version: ContentVersion
    var extents: ExtentSet
  }

  /// Why a partial file was not resumed; shown to the user.
  private(set) var refusal: String?

  private let location: FileLocation
  private let key: CacheKey
  private let source: String
  private var data: Descriptor?
  /// Whether this run has created the file of the bytes.
  private var isNew = false
  private var record: Descriptor?
  /// The record while it is not written: that of a small file, which may be complete before an
  /// interruption.
  private var unwritten: UnwrittenRecord?
  private var salt: UInt64 = 0
  private var position: Int64 = 0
  private var sequence: UInt64 = 0
  /// Whether the disk has failed to store bytes.
  ///
  /// The kernel may return right bytes from memory that never reached the disk, so uncommitted
  /// bytes must not be resumed.
  var hasSyncFailed = false

  /// Creates a partial file for `location`.
  ///
  /// - Parameters:
  ///   - location: the place of the complete file.
  ///   - identity: the source of the bytes; another URL, or another range of it, is another
  ///     identity.
  ///   - source: the URL as it may be shown.
  init(location: FileLocation, identity: String, source: String) {
    self.location = location
    key = CacheKey(identity)
    self.source = source
  }

  private struct UnwrittenRecord {
    let header: RecordHeader
    var claims: [LogRecord] = []

    /// The maximum number of claims that wait.
    static let maximumClaimCount = 64
  }

  /// Up to this size, the record of a file is not written at the beginning.
  ///
  /// It is written if the file takes long or is interrupted: thousands of short-lived records would
  /// cost more than they are worth. If the process dies, such a file may lose all of its bytes.
  static let maximumByteCountWithoutRecord: Int64 = 256 << 10

  // MARK: Start

  /// Whether a partial file is there whose record says that its bytes are those of another request.
  ///
  /// A file that cannot be read, or whose record cannot, is nobody's progress.
  var isOfAnotherRequest: Bool {
    let directory = location.directory.rawValue
    do throws(ErrorNumber) {
      let data = try SystemCalls.openFile(location.partName, in: directory)
      guard try SystemCalls.status(data.rawValue).byteCount > 0 else { return false }
      let record = try SystemCalls.openFile(location.recordName, in: directory)
      return try Recovery.header(of: record).map { $0.header.key != key } ?? false
    } catch {
      return false
    }
  }

  /// Takes over the bytes of an earlier run.
  ///
  /// It reads and hashes all of them, which may take a while: about 0.2 s per GiB in memory,
  /// otherwise as long as the disk needs.
  ///
  /// - Returns: nil if there are no bytes, or no usable ones, for which ``refusal`` then gives the
  ///   reason.
  func recover() throws(FileFailure) -> Remains? {
    do throws(ErrorNumber) {
      let data = try SystemCalls.openFile(location.partName, in: location.directory.rawValue)
      guard try SystemCalls.lockExclusively(data.rawValue) else {
        throw ErrorNumber(rawValue: EBUSY)
      }
      // The last holder of the lock may have renamed or removed the file.
      guard try isCurrent(data) else { return nil }
      let status = try SystemCalls.status(data.rawValue)
      // An empty file is no loss, whatever its record says.
      if status.isRegularFile, status.byteCount == 0 { return nil }
      guard status.isOwnAlone || !status.isRegularFile else { throw ErrorNumber(rawValue: EACCES) }
      location.removeLeftover(location.newRecordName)
      return try recover(data: data, byteCount: status.byteCount)
    } catch {
      switch error.rawValue {
      case ENOENT: return nil
      case EBUSY: throw location.inUse
      case EACCES, EPERM:
        refusal = "the partial file is not this user's alone"
        return nil
      case EINVAL, EISDIR, ELOOP, ENXIO:
        refusal = "there is no usable record of the partial file"
        return nil
      case EPROTONOSUPPORT:
        throw FileFailure(
          code: .destination,
          reason: "'\(location.partPath)' was begun by a later version of httpfs: go on with that"
            + " one, or remove the file to start over", errno: error.rawValue)
      default: throw location.failure("cannot open '\(location.partPath)'", error)
      }
    }
  }

  private func recover(data: Descriptor, byteCount: Int64) throws(ErrorNumber) -> Remains? {
    let record: Descriptor
    do throws(ErrorNumber) {
      record = try SystemCalls.openFile(location.recordName, in: location.directory.rawValue)
    } catch {
      // A small file of a killed process has no record.
      if error.rawValue == ENOENT, byteCount <= Self.maximumByteCountWithoutRecord { return nil }
      refusal = "there is no record of the partial file"
      if error.rawValue == ENOENT { return nil }
      throw error
    }
    // Its hashes contain no secret: any writer of the record can vouch for any bytes.
    let status = try SystemCalls.status(record.rawValue)
    guard status.isOwnAlone || !status.isRegularFile else { throw ErrorNumber(rawValue: EACCES) }
    guard let found = try Recovery.header(of: record) else {
      if try Recovery.isOfLaterFormat(record) { throw ErrorNumber(rawValue: EPROTONOSUPPORT) }
      refusal = "the record of the partial file is damaged"
      return nil
    }
    guard found.header.key == key else {
      refusal = "the partial file is of another URL"
      return nil
    }
    let log = LogReader(descriptor: record, start: Int64(found.byteCount), salt: found.header.salt)
    // Verify all bytes, because the transfer will vouch for the whole file.
    let isSameFile = found.header.dataID == (try SystemCalls.identity(data.rawValue))
    let recovery = try Recovery(
      log: log, header: found.header, data: data, uncommitted: .verifyOnDisk, trustsCommits: false)
    salt = found.header.salt
    position = log.start + Int64(recovery.recordCount) * Int64(LogRecord.byteCount)
    sequence = recovery.recordCount
    var current = record
    if recovery.needsRewrite || !isSameFile {
      var header = found.header
      header.dataID = try SystemCalls.identity(data.rawValue)
      // The new record declares the same bytes committed as the old one.
      if !isSameFile { try SystemCalls.syncData(data.rawValue) }
      let newSalt = UInt64.random(in: .min ... .max)
      guard
        let file = try recovery.rewrite(
          log: log, header: header, salt: newSalt, name: location.recordName,
          temporaryName: location.newRecordName, in: location.directory)
      else { return nil }
      salt = newSalt
      position = file.position
      sequence = file.sequence
      current = file.descriptor
    }
    // The disk may have refused bytes of this file, and may also lose their replacements. That must
    // not fail the next sync.
    try? SystemCalls.syncData(data.rawValue)
    try FreeBlocks.giveBack(of: data, except: recovery.extents)
    self.data = data
    self.record = current
    var version = found.header.version
    version.completeLength = recovery.summary.completeLength ?? version.completeLength
    return Remains(version: version, extents: recovery.extents)
  }

  /// Begins at the first byte and discards earlier bytes.
  ///
  /// - Parameters:
  ///   - version: the version of the bytes.
  ///   - byteCount: the number of bytes; nil if unknown.
  /// - Throws: if a file cannot be created, or if another process writes it.
  func begin(version: ContentVersion, byteCount: Int64?) throws(FileFailure) {
    do throws(ErrorNumber) {
      let directory = location.directory.rawValue
      let data = try lockedData()
      // Remove the claims first: a record must never lie beside bytes that it does not describe.
      record = nil
      unwritten = nil
      try? SystemCalls.unlink(location.recordName, in: directory)
      try SystemCalls.truncate(data.rawValue, to: 0)
      let header = RecordHeader(
        salt: .random(in: .min ... .max), dataID: try SystemCalls.identity(data.rawValue),
        key: key, version: version, source: source)
      unwritten = UnwrittenRecord(header: header)
      if byteCount.map({ $0 > Self.maximumByteCountWithoutRecord }) ?? true {
        try writeRecord()
      }
    } catch {
      if error.rawValue == EBUSY { throw location.inUse }
      // The directory itself was found to be writable.
      if error.rawValue == EPERM { throw location.belongsToAnother }
      throw location.failure("cannot create '\(location.partPath)'", error)
    }
  }

  /// Writes the record, unless it is already written.
  private func writeRecord() throws(ErrorNumber) {
    guard let unwritten else { return }
    let header = unwritten.header
    guard let encoded = header.encoded() else { throw ErrorNumber(rawValue: E2BIG) }
    let file = try RecordFile.replace(
      header: encoded, salt: header.salt, name: location.recordName,
      temporaryName: location.newRecordName, in: location.directory, isDurable: false)
    self.unwritten = nil
    record = file.descriptor
    salt = header.salt
    position = file.position
    sequence = file.sequence
    for claim in unwritten.claims { try append(claim) }
  }

  /// Opens and locks the file of the bytes, which is private until it is complete.
  ///
  /// A file that does not belong to this user alone is replaced by a new one.
  private func lockedData() throws(ErrorNumber) -> Descriptor {
    if let data { return data }
    let directory = location.directory.rawValue
    for _ in 0..<Self.openAttempts {
      let opened: Descriptor
      do throws(ErrorNumber) {
        opened = try SystemCalls.createFile(location.partName, in: directory)
        isNew = true
      } catch {
        guard error.rawValue == EEXIST else { throw error }
        isNew = false
        guard let found = try existingData() else { continue }
        opened = found
      }
      guard try SystemCalls.lockExclusively(opened.rawValue) else { break }
      if try isCurrent(opened) {
        data = opened
        return opened
      }
    }
    throw ErrorNumber(rawValue: EBUSY)
  }

  /// The existing partial file, if no other user can have written it; nil if its name is free now.
  private func existingData() throws(ErrorNumber) -> Descriptor? {
    let directory = location.directory.rawValue
    do throws(ErrorNumber) {
      let found = try SystemCalls.openFile(location.partName, in: directory)
      if try SystemCalls.status(found.rawValue).isOwnAlone { return found }
      // A file of another user that is being written is not removed.
      guard try SystemCalls.lockExclusively(found.rawValue) else {
        throw ErrorNumber(rawValue: EBUSY)
      }
    } catch {
      if error.rawValue == ENOENT { return nil }
      guard [EACCES, EPERM, ELOOP, ENXIO].contains(error.rawValue) else { throw error }
    }
    do throws(ErrorNumber) {
      try SystemCalls.unlink(location.partName, in: directory)
    } catch {
      guard error.rawValue != ENOENT else { return nil }
      throw error.rawValue == EACCES ? ErrorNumber(rawValue: EPERM) : error
    }
    return nil
  }

  /// How often the file is opened again after another process has removed it.
  private static let openAttempts = 10

  /// Whether an open file still has its name.
  private func isCurrent(_ opened: Descriptor) throws(ErrorNumber) -> Bool {
    try SystemCalls.isSameFile(
      opened.rawValue, location.partName, in: location.directory.rawValue)
  }

  // MARK: Storing

  /// Writes `bytes` at `offset` and records them.
  ///
  /// When it returns, they survive the process, except those of a small file.
  func store(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure) {
    guard let data, !bytes.isEmpty else { return }
    do throws(ErrorNumber) {
      try SystemCalls.write(data.rawValue, bytes, at: offset)
      try append(
        .extent(
          offset: offset, byteCount: Int64(bytes.count), contentHash: ContentHash.hash(bytes)))
    } catch {
      throw location.failure("cannot write '\(location.partPath)'", error)
    }
  }

  /// Records the length if it was unknown at the beginning.
  func recordLength(_ length: Int64) throws(FileFailure) {
    do throws(ErrorNumber) {
      try append(.completeLength(length))
    } catch {
      throw location.failure("cannot write '\(location.recordPath)'", error)
    }
  }

  private func append(_ claim: LogRecord) throws(ErrorNumber) {
    if unwritten != nil {
      unwritten?.claims.append(claim)
      if unwritten?.claims.count ?? 0 >= UnwrittenRecord.maximumClaimCount { try writeRecord() }
      return
    }
    guard let record else { return }
    let words = claim.encoded(sequence: sequence + 1, salt: salt)
    try withUnsafeBytes(of: words) { bytes throws(ErrorNumber) in
      try SystemCalls.write(record.rawValue, bytes, at: position)
    }
    position += Int64(LogRecord.byteCount)
    sequence += 1
  }

  // MARK: Durability

  /// The bytes stored so far, to be synced while more are written.
  struct DataSync: Sendable {
    fileprivate let data: Descriptor
    fileprivate let record: Descriptor
    fileprivate let sequence: UInt64

    /// Waits until the bytes, and then their record, are on the disk.
    ///
    /// The COMMIT follows later; until then, the hash of each extent vouches for its bytes. But if
    /// the record is not on the disk at all, a power failure costs all bytes. If the disk refuses
    /// the record, this download is not affected.
    func run() throws(ErrorNumber) {
      try SystemCalls.syncData(data.rawValue)
      try? SystemCalls.syncData(record.rawValue)
    }
  }

  /// A sync of the bytes stored so far; nil if there is no file or no record.
  func makeDataSync() -> DataSync? {
    // A file that takes this long needs a record.
    try? writeRecord()
    guard let data, let record else { return nil }
    return DataSync(data: data, record: record, sequence: sequence)
  }

  /// Records that the bytes of a ``DataSync`` need not be verified again.
  func commit(_ sync: DataSync) {
    // The sync says nothing about a record that was created since. If the commit cannot be written,
    // nothing is lost: the bytes are then verified.
    guard let record, record === sync.record else { return }
    try? append(.commit(fetchedByteCount: 0, coveredSequence: sync.sequence))
  }

  // MARK: Completion

  /// Makes the bytes durable and gives the file its name.
  ///
  /// - Parameters:
  ///   - length: the length of the file.
  ///   - replaced: the file that it may replace.
  ///   - result: the record for the file; nil for none.
  ///   - modified: its modification time in seconds since 1970; nil for the present.
  /// - Throws: if a call fails; the partial file is then left as it was.
  func finish(
    length: Int64, replacing replaced: FilePlacement.Replacement, result: ResultRecord?,
    modified: Int64? = nil
  ) throws(FileFailure) {
    guard let data else { return }
    do throws(ErrorNumber) {
      // A file that has taken the name meanwhile was not fetched and checked.
      guard try isCurrent(data) else { throw ErrorNumber(rawValue: ESTALE) }
      try SystemCalls.truncate(data.rawValue, to: length)
      do throws(ErrorNumber) {
        try SystemCalls.sync(data.rawValue)
      } catch {
        hasSyncFailed = true
        throw error
      }
      // The record contains the time. A file with another time is right, too.
      if let modified { try? SystemCalls.setModificationTime(data.rawValue, to: modified) }
      let directory = location.directory.rawValue
      // A file without a record is right, too, but is not replaced later.
      let isAttached = try result?.attach(to: data) ?? true
      // Do this while the lock still belongs to this name.
      location.removeLeftover(location.newRecordName)
      do throws(ErrorNumber) {
        try FilePlacement(location: location).place(data, replacing: replaced)
      } catch {
        try? SystemCalls.setPermissions(data.rawValue, to: 0o600)
        throw error
      }
      try? SystemCalls.unlink(location.recordName, in: directory)
      if !isAttached { try? result?.write(beside: data, at: location) }
      try SystemCalls.sync(directory)
    } catch {
      guard error.rawValue != ESTALE else { throw location.wasReplaced }
      if error.rawValue == EEXIST {
        throw location.exists(
          "has come to be there, or was changed, while it was downloaded; what has come is in"
            + " '\(location.partPath)'")
      }
      throw location.failure("cannot complete '\(location.path)'", error)
    }
    unwritten = nil
    release()
  }

  /// Closes the files; the stored bytes can be resumed.
  ///
  /// If this run has created the files and stored nothing, it removes them.
  func release() {
    if hasSyncFailed { discardUncommitted() }
    if isNew, let data, (try? SystemCalls.status(data.rawValue).byteCount) == 0,
      (try? isCurrent(data)) == true
    {
      isNew = false
      return remove()
    }
    // If this fails, the bytes are fetched again.
    try? writeRecord()
    unwritten = nil
    // A sync in progress may hold the descriptor a little longer, but not the lock.
    if let data { SystemCalls.unlock(data.rawValue) }
    record = nil
    data = nil
  }

  /// Leaves a record of the committed bytes only, or none.
  private func discardUncommitted() {
    hasSyncFailed = false
    // None of these bytes were committed.
    if unwritten != nil { return remove() }
    guard let data, let record else { return }
    do throws(ErrorNumber) {
      guard let found = try Recovery.header(of: record) else { return remove() }
      let log = LogReader(
        descriptor: record, start: Int64(found.byteCount), salt: found.header.salt)
      let recovery = try Recovery(
        log: log, header: found.header, data: data, uncommitted: .discard)
      guard !recovery.extents.isEmpty else { return remove() }
      let rewritten = try recovery.rewrite(
        log: log, header: found.header, salt: .random(in: .min ... .max),
        name: location.recordName, temporaryName: location.newRecordName,
        in: location.directory)
      if rewritten == nil { remove() }
    } catch {
      remove()
    }
  }

  /// Removes the bytes and the record, unless another transfer is writing them.
  func remove() {
    let directory = location.directory.rawValue
    if data == nil, let found = try? SystemCalls.openFile(location.partName, in: directory) {
      guard (try? SystemCalls.lockExclusively(found.rawValue)) == true,
        (try? isCurrent(found)) == true,
        (try? SystemCalls.status(found.rawValue).isOwnAlone) == true
      else { return }
      data = found
    }
    unwritten = nil
    location.removeLeftover(location.newRecordName)
    try? SystemCalls.unlink(location.recordName, in: directory)
    try? SystemCalls.unlink(location.partName, in: directory)
    release()
  }

  /// The error for a failure of the disk, which the kernel reports only once.
  func syncFailure(_ error: ErrorNumber) -> FileFailure {
    location.failure("the disk failed to store '\(location.partPath)'", error)
  }

  /// The descriptor of the bytes, for reading them again.
  var descriptor: Descriptor? { data }
}
