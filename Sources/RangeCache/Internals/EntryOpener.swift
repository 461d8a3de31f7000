import ExtentRecord
import Glibc
import HTTPTransferCore
import LinuxSystem

/// Opens and creates entries; see ``CacheDirectory/openEntry(_:uncommitted:)`` and
/// ``CacheDirectory/createEntry(_:version:source:reference:)``.
struct EntryOpener: Sendable {
  let context: CacheContext

  // MARK: Opening

  func open(
    _ key: CacheKey, uncommitted: UncommittedExtents
  ) throws(CacheError) -> CacheEntry? {
    context.recordings.end(key)
    let folder = context.folder(of: key)
    do throws(ErrorNumber) {
      return try recover(folder, uncommitted: uncommitted)
    } catch {
      // There is no entry, or a name is not the regular file or directory that it should be.
      if [ENOENT, ELOOP, ENOTDIR, EISDIR, ENXIO].contains(error.rawValue) { return nil }
      throw CacheError(error, path: folder.path)
    }
  }

  private func recover(
    _ folder: EntryFolder, uncommitted: UncommittedExtents
  ) throws(ErrorNumber) -> CacheEntry? {
    let directory = try folder.open()
    let record = try SystemCalls.openFile(RecordFile.name, in: directory.rawValue)
    guard let recordByteCount = try byteCount(ofOwn: record) else { return nil }
    guard let (found, log) = try Recovery.header(of: record, byteCount: recordByteCount),
      found.key == folder.key
    else {
      // Leave an entry of a later version untouched.
      if try Recovery.isOfLaterFormat(record) { throw ErrorNumber(rawValue: EPROTONOSUPPORT) }
      return nil
    }
    var header = found
    let data = try SystemCalls.openFile(header.dataName, in: directory.rawValue)
    guard try byteCount(ofOwn: data) != nil else { return nil }
    EntryFolder.removeFiles(in: directory, keeping: header.dataName)

    // Take the stamp before reading any bytes, because they may be changed at any time.
    let stamp = context.stamps.stamp(of: data)
    let recovery = try Recovery(
      log: log, header: header, data: data,
      uncommitted: uncommitted == .verify && !context.blocks.isSettled(header.dataID)
        ? .verifyOnDisk : uncommitted)
    guard let (end, isReadOnly) = try repair(log, by: recovery, header: &header, in: directory)
    else { return nil }
    header.version.completeLength =
      recovery.summary.completeLength ?? header.version.completeLength
    let isStamped =
      uncommitted != .discard
      && context.stamps.isCurrent(recovery.stamp, stamp, salt: header.salt)
    let entry = CacheEntry(
      FoundEntry(
        header: header, end: end, stamp: stamp, isStamped: isStamped, extents: recovery.extents,
        believed: isStamped ? ExtentSet() : recovery.believed,
        fetchedByteCount: recovery.summary.fetchedByteCount,
        uncommittedByteCount: recovery.uncommittedByteCount, checksumMark: recovery.checksumMark),
      data: data, context: context)
    if isReadOnly { context.recordings.end(folder.key) }
    if uncommitted == .discard { context.blocks.recordLoss(in: header.dataID) }
    return entry
  }

  /// Removes claims that proved false from a record.
  ///
  /// - Returns: the end of its log, and whether nothing may be appended; nil if the record cannot
  ///   be used.
  private func repair(
    _ log: LogReader, by recovery: Recovery, header: inout RecordHeader, in directory: Descriptor
  ) throws(ErrorNumber) -> (LogEnd, isReadOnly: Bool)? {
    let end = LogEnd(
      position: log.start + Int64(recovery.recordCount) * Int64(LogRecord.byteCount),
      sequence: recovery.recordCount)
    guard recovery.needsRewrite else { return (end, false) }
    let salt = UInt64.random(in: .min ... .max)
    do throws(ErrorNumber) {
      guard let file = try recovery.rewrite(log: log, header: header, salt: salt, in: directory)
      else { return nil }
      header.salt = salt
      return (LogEnd(position: file.position, sequence: file.sequence), false)
    } catch {
      // Reading is safe on a read-only file system. But nothing must be appended: a COMMIT could
      // cover a refuted claim.
      if error.rawValue == EROFS { return (end, true) }
      guard !error.isShortage, let cut = try? recovery.cut(log) else { throw error }
      return (LogEnd(position: cut.position, sequence: cut.sequence), false)
    }
  }

  /// The size of an open file, if the cache may have written it; tightens its mode to 0600.
  private func byteCount(ofOwn file: Descriptor) throws(ErrorNumber) -> Int64? {
    let status = try SystemCalls.status(file.rawValue)
    guard status.isRegularFile, status.owner == ProcessCalls.effectiveUserID else { return nil }
    if status.permissions & 0o077 != 0 {
      do throws(ErrorNumber) {
        try SystemCalls.setPermissions(file.rawValue, to: 0o600)
      } catch {
        guard error.rawValue == EROFS else { throw error }
      }
    }
    return status.byteCount
  }

  // MARK: Create

  func create(
    _ key: CacheKey, version: ContentVersion, source: String, reference: String?
  ) throws(CacheError) -> CacheEntry {
    let folder = context.folder(of: key)
    let header = RecordHeader(
      salt: .random(in: .min ... .max), dataID: .random(in: .min ... .max), key: key,
      version: version, source: source, reference: reference)
    guard (0...Int64.maximumFileOffset).contains(version.completeLength ?? 0),
      let encoded = header.encoded()
    else {
      throw CacheError(code: .invalidArgument, path: folder.path)
    }
    context.recordings.end(key)
    context.keys.recordCreation(of: key)
    let directory = try folder.make()
    let entry: CacheEntry
    do throws(ErrorNumber) {
      let data = try SystemCalls.createFile(header.dataName, in: directory.rawValue)
      do throws(ErrorNumber) {
        let file = try RecordFile.replace(
          header: encoded, salt: header.salt, in: directory, isDurable: false)
        entry = CacheEntry(
          FoundEntry(
            header: header, end: LogEnd(position: file.position, sequence: file.sequence),
            stamp: context.stamps.stamp(of: data)),
          data: data, isNewData: true, record: file.descriptor, context: context)
      } catch {
        try? SystemCalls.unlink(header.dataName, in: directory.rawValue)
        throw error
      }
    } catch {
      throw CacheError(error, path: folder.path)
    }
    context.allocated.recordFreed(
      EntryFolder.removeFiles(in: directory, keeping: header.dataName))
    return entry
  }
}
