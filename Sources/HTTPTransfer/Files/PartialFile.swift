internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import LinuxSystem

/// A download to a file that is not whole yet: `NAME.httpfs-part` with the bytes, and
/// `NAME.httpfs-part.record`, which says whose they are and which of them are there.
///
/// The record has the format of the cache's (`docs/CACHE-FORMAT.md`): a header with URL and version,
/// then a log of extents with their hashes, so that a crash at any moment costs what was in flight.
/// Whoever writes holds an exclusive `flock` on the bytes.
///
/// `@unchecked Sendable`: one thread at a time uses it, first the one that prepares, then the network
/// thread, then the one that finishes; ``DataSync`` alone is used beside them, and it only holds
/// descriptors.
final class PartialFile: @unchecked Sendable {
  /// What an earlier run has left.
  struct Remains {
    var version: ContentVersion
    var extents: ExtentSet
  }

  /// Why a partial file was not gone on with; said to the user.
  private(set) var refusal: String?

  private let location: FileLocation
  private let key: CacheKey
  private let source: String
  private var data: Descriptor?
  private var record: Descriptor?
  /// What the record is to say, as long as it is not written: that of a small file, which may be
  /// whole before anything interrupts it.
  private var unwritten: UnwrittenRecord?
  private var salt: UInt64 = 0
  private var position: Int64 = 0
  private var sequence: UInt64 = 0
  /// Whether the disk has failed to store something: the kernel may show right bytes from memory that
  /// never reached it, and what is not committed must not be gone on with.
  var hasSyncFailed = false

  /// A partial file for `location`.
  ///
  /// - Parameters:
  ///   - location: where the whole file is to be.
  ///   - identity: what the bytes are of: another URL, or another range of it, is another identity.
  ///   - source: the URL as it may be shown.
  init(location: FileLocation, identity: String, source: String) {
    self.location = location
    key = CacheKey(identity)
    self.source = source
  }

  private struct UnwrittenRecord {
    let header: RecordHeader
    var claims: [LogRecord] = []

    /// So many claims wait at most.
    static let greatestClaimCount = 64
  }

  /// The record of a file of up to so many bytes is written when something interrupts the file.
  ///
  /// Thousands of records that live for a moment cost more than what they say is worth. So much may
  /// the end of the process cost of such a file.
  static let greatestByteCountWithoutRecord: Int64 = 256 << 10

  // MARK: Beginning

  /// Takes over what an earlier run has left; nil where there is nothing, or nothing of use, of
  /// which ``refusal`` then tells.
  ///
  /// Reads and hashes all that is there, so it may take a while: some 0.2 s per GiB in memory, else as long
  /// as the disk needs.
  func recover() throws(FileFailure) -> Remains? {
    do throws(ErrorNumber) {
      let data = try SystemCalls.openFile(location.partName, in: location.directory.rawValue)
      guard try SystemCalls.lockExclusively(data.rawValue) else {
        throw ErrorNumber(rawValue: EBUSY)
      }
      // Whoever held the lock before may have given the file its name, or removed it.
      guard try isCurrent(data) else { return nil }
      let status = try SystemCalls.status(data.rawValue)
      // Nothing is lost with one that holds nothing, whatever its record says.
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
            + " one, or remove the file to begin anew", errno: error.rawValue)
      default: throw location.failure("cannot open '\(location.partPath)'", error)
      }
    }
  }

  private func recover(data: Descriptor, byteCount: Int64) throws(ErrorNumber) -> Remains? {
    let record: Descriptor
    do throws(ErrorNumber) {
      record = try SystemCalls.openFile(location.recordName, in: location.directory.rawValue)
    } catch {
      // A small file that was killed has none.
      if error.rawValue == ENOENT, byteCount <= Self.greatestByteCountWithoutRecord { return nil }
      refusal = "there is no record of the partial file"
      if error.rawValue == ENOENT { return nil }
      throw error
    }
    // Its hashes have no secret: whoever can write it can vouch for any bytes.
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
    // Everything is verified, since the whole file is about to be vouched for.
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
      // The new record calls committed what the old one did.
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
    // The disk may have refused bytes there, and then lose what takes their place. That must not fail the
    // next sync.
    try? SystemCalls.syncData(data.rawValue)
    try FreeBlocks.giveBack(of: data, except: recovery.extents)
    self.data = data
    self.record = current
    var version = found.header.version
    version.completeLength = recovery.summary.completeLength ?? version.completeLength
    return Remains(version: version, extents: recovery.extents)
  }

  /// Begins at the first byte; what was there is thrown away.
  ///
  /// - Parameters:
  ///   - version: what the bytes are of.
  ///   - byteCount: how many there will be; nil where that is not known.
  /// - Throws: where a file cannot be created, or another process writes it.
  func begin(version: ContentVersion, byteCount: Int64?) throws(FileFailure) {
    do throws(ErrorNumber) {
      let directory = location.directory.rawValue
      let data = try lockedData()
      // The claims go first: never a record beside bytes that it is not of.
      record = nil
      unwritten = nil
      try? SystemCalls.unlink(location.recordName, in: directory)
      try SystemCalls.truncate(data.rawValue, to: 0)
      let header = RecordHeader(
        salt: .random(in: .min ... .max), dataID: try SystemCalls.identity(data.rawValue),
        key: key, version: version, source: source)
      unwritten = UnwrittenRecord(header: header)
      if byteCount.map({ $0 > Self.greatestByteCountWithoutRecord }) ?? true {
        try writeRecord()
      }
    } catch {
      if error.rawValue == EBUSY { throw location.inUse }
      // The directory itself was found writable.
      if error.rawValue == EPERM { throw location.belongsToAnother }
      throw location.failure("cannot create '\(location.partPath)'", error)
    }
  }

  /// Writes the record, where it is not written yet.
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

  /// The file of the bytes, locked: this user's alone, else created anew, and private until it is whole.
  private func lockedData() throws(ErrorNumber) -> Descriptor {
    if let data { return data }
    let directory = location.directory.rawValue
    for _ in 0..<Self.openAttempts {
      let opened: Descriptor
      do throws(ErrorNumber) {
        opened = try SystemCalls.createFile(location.partName, in: directory)
      } catch {
        guard error.rawValue == EEXIST else { throw error }
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

  /// The file that has the name of the partial one, where nobody else can have written it; else nil, and
  /// the name is free.
  private func existingData() throws(ErrorNumber) -> Descriptor? {
    let directory = location.directory.rawValue
    do throws(ErrorNumber) {
      let found = try SystemCalls.openFile(location.partName, in: directory)
      if try SystemCalls.status(found.rawValue).isOwnAlone { return found }
      // Somebody else's that is being written is not taken away.
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

  /// How often the file is opened anew, because another process has taken it away meanwhile.
  private static let openAttempts = 10

  /// Whether an open file is still the one of its name.
  private func isCurrent(_ opened: Descriptor) throws(ErrorNumber) -> Bool {
    try SystemCalls.isSameFile(
      opened.rawValue, location.partName, in: location.directory.rawValue)
  }

  // MARK: Storing

  /// Writes `bytes` at `offset`, then records them; when it returns they survive the process, but for
  /// those of a small file.
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

  /// Records the length, where it was unknown at the beginning.
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
      if unwritten?.claims.count ?? 0 >= UnwrittenRecord.greatestClaimCount { try writeRecord() }
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

  // MARK: Making it durable

  /// What has been stored up to now, to be synced beside further writes.
  struct DataSync: Sendable {
    fileprivate let data: Descriptor
    fileprivate let record: Descriptor
    fileprivate let sequence: UInt64

    /// Waits until the bytes are on the disk, and then what the record says of them.
    ///
    /// Its COMMIT comes later: until then the hash of each extent vouches for the bytes. But of a record
    /// that is not on the disk at all a loss of power leaves nothing, and so costs all bytes. A record
    /// that the disk refuses costs this download nothing.
    func run() throws(ErrorNumber) {
      try SystemCalls.syncData(data.rawValue)
      try? SystemCalls.syncData(record.rawValue)
    }
  }

  /// What has been stored up to now; nil where there is nothing to be synced for.
  func makeDataSync() -> DataSync? {
    // A file that takes so long is to have a record.
    try? writeRecord()
    guard let data, let record else { return nil }
    return DataSync(data: data, record: record, sequence: sequence)
  }

  /// Records that what a ``DataSync`` has synced need not be verified again.
  func commit(_ sync: DataSync) {
    // Of a record that was begun anew meanwhile it says nothing. One that cannot be written is no
    // loss: the bytes are then verified.
    guard let record, record === sync.record else { return }
    try? append(.commit(fetchedByteCount: 0, coveredSequence: sync.sequence))
  }

  // MARK: The end

  /// Makes the bytes durable and gives them their name.
  ///
  /// - Parameters:
  ///   - length: how long the file is.
  ///   - replaced: what it may take the place of.
  ///   - result: what the file is to say of itself; nil for nothing.
  /// - Throws: where a call fails; the partial file then is as it was.
  func finish(
    length: Int64, replacing replaced: FilePlacement.Replacement, result: ResultRecord?
  ) throws(FileFailure) {
    guard let data else { return }
    do throws(ErrorNumber) {
      // What has its name meanwhile is not what was fetched and checked.
      guard try isCurrent(data) else { throw ErrorNumber(rawValue: ESTALE) }
      try SystemCalls.truncate(data.rawValue, to: length)
      do throws(ErrorNumber) {
        try SystemCalls.sync(data.rawValue)
      } catch {
        hasSyncFailed = true
        throw error
      }
      let directory = location.directory.rawValue
      // A file that has no record is right all the same: it is only not replaced later.
      let isAttached = try result?.attach(to: data) ?? true
      // As long as the lock is that of this name.
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

  /// Closes the files; what is there can be gone on with.
  func release() {
    if hasSyncFailed { discardUncommitted() }
    // Where that fails, the bytes are fetched again.
    try? writeRecord()
    unwritten = nil
    // A sync under way may hold the descriptor a little longer, but not the lock.
    if let data { SystemCalls.unlock(data.rawValue) }
    record = nil
    data = nil
  }

  /// Leaves a record of what was committed alone, or none.
  private func discardUncommitted() {
    hasSyncFailed = false
    // Of these bytes nothing was committed.
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

  /// Removes the bytes and the record, unless somebody else writes them.
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

  /// A failure of the disk, which the kernel reports once only.
  func syncFailure(_ error: ErrorNumber) -> FileFailure {
    location.failure("the disk failed to store '\(location.partPath)'", error)
  }

  /// The descriptor of the bytes, for reading them again.
  var descriptor: Descriptor? { data }
}
