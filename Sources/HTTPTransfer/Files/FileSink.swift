internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import HTTPTypes
internal import LinuxSystem
internal import TextFormat

/// Writes to a file that appears when it is complete; see ``PartialFile``.
///
/// `@unchecked Sendable`: one thread at a time uses it, see ``BodySink``.
final class FileSink: BodySink, @unchecked Sendable {
  private let path: String
  private let base: String?
  private let existing: ExistingFile
  private let identity: String
  private let source: String
  private let resumes: Bool
  private let keepsOtherDownloads: Bool
  private let setsModificationTime: Bool
  private var location: FileLocation?
  private var file: PartialFile?
  /// The file of an earlier transfer at the destination.
  private var result: EarlierResult?
  /// Whether its bytes do not have the expected hashes.
  private var isEarlierWrong = false
  /// The record for the finished file; nil if the transfer is no download.
  private var record: ResultRecord?
  private let completeLength: Int64?
  private let checksum: Checksum?
  private let pieces: PieceHashes?
  private var schedule = SyncSchedule(wantedByteCount: nil, now: .now)
  /// Whether a later run can resume the stored bytes.
  private var isResumable = true
  /// The sync in progress.
  private var sync: SyncInProgress?
  /// The first failure of a sync.
  private var syncError: ErrorNumber?

  init(path: String, inside base: String?, existing: ExistingFile, request: Request) {
    self.path = path
    self.base = base
    self.existing = existing
    completeLength = request.completeLength
    setsModificationTime = request.setsModificationTime
    checksum = request.checksum
    pieces = request.pieces
    keepsOtherDownloads = request.keepsOtherDownloads
    resumes = request.resumes && !request.decodesContent && request.method == .get
    // Decoded bytes and their offsets are not those of the raw body.
    let form =
      (request.range.map { " \($0.rangeField)" } ?? "")
      + (request.decodesContent ? " decoded" : "")
    // A new signature does not change the bytes of a URL.
    identity = request.url.withoutSignature + form + Self.hashes(of: request)
    source = request.url.redacted
    if request.method == .get, request.body == nil {
      record = ResultRecord(
        key: CacheKey(request.url.withoutSignature + form), source: source,
        version: ContentVersion(), checks: Self.checks(of: request))
    }
  }

  /// A hash of the checksums that a request compares the bytes with; nil if there are none.
  private static func checks(of request: Request) -> String? {
    var text = hashes(of: request)
    if let checksum = request.checksum { text += " whole \(checksum)" }
    return text.isEmpty ? nil : CacheKey(text).hex
  }

  /// The hashes that vouch for bytes which no validator vouches for.
  ///
  /// Those are the bytes of several mirrors, and of pieces that are not compared yet. A transfer
  /// without these hashes must not resume such bytes.
  private static func hashes(of request: Request) -> String {
    var text = ""
    if let checksum = request.checksum, !request.mirrors.isEmpty { text += " \(checksum)" }
    if let pieces = request.pieces {
      text += " \(pieces.algorithm.rawValue):\(pieces.pieceByteCount)"
      for digest in pieces.digests {
        text += " \(Checksum(algorithm: pieces.algorithm, digest: digest).hexadecimal)"
      }
    }
    return text
  }

  private(set) var refusal: String?

  func prepare() throws(FileFailure) -> PartialFile.Remains? {
    let location = try FileLocation(path: path, inside: base)
    // Do this whatever becomes of the transfer. A process that has just created one of them loses
    // no bytes.
    location.removeLeftover(location.probeName)
    location.removeLeftover(location.newOriginName)
    switch existing {
    case .replace: break
    case .replaceResult:
      // A transfer that is no download has no earlier result.
      if let record {
        result = try EarlierResult.find(at: location, key: record.key)
        try compareEarlier(at: location)
      } else {
        try location.checkIsFree()
      }
    case .keep: try location.checkIsFree()
    }
    let file = PartialFile(location: location, identity: identity, source: source)
    if keepsOtherDownloads, file.isOfAnotherRequest {
      throw location.exists(
        "cannot be begun: '\(location.partPath)' is the unfinished download of another URL")
    }
    self.location = location
    self.file = file
    guard resumes else { return nil }
    let remains = try file.recover()
    refusal = file.refusal
    if let remains { record?.version = remains.version }
    return remains
  }

  /// Compares the bytes of an earlier result that other users may have changed.
  ///
  /// If they are wrong, the file is fetched again.
  private func compareEarlier(at location: FileLocation) throws(FileFailure) {
    guard let result, result.isWritableForOthers, earlierVersion != nil else { return }
    do throws(ErrorNumber) {
      isEarlierWrong = try !result.hashes(to: checksum, pieces: pieces)
    } catch {
      throw location.failure("cannot read '\(location.path)'", error)
    }
  }

  /// The version of the existing file, if a confirmation by the server is enough.
  ///
  /// That requires that the earlier transfer compared the bytes with everything that this one
  /// would.
  var earlierVersion: ContentVersion? {
    guard let result, let record, !isEarlierWrong,
      result.checks == record.checks || record.checks == nil,
      completeLength == nil || completeLength == result.stamp.byteCount,
      result.version.entityTag != nil || result.version.lastModified != nil
    else { return nil }
    return result.version
  }

  func keepEarlier() throws(FileFailure) -> Int64 {
    guard let location, let result else { return 0 }
    guard result.isUntouched(as: location.name, in: location.directory) else {
      throw location.exists("was changed while the server was asked for it")
    }
    // The partial file is of a version that the server no longer has.
    file?.remove()
    letGo()
    return result.stamp.byteCount
  }

  func begin(version: ContentVersion, wantedByteCount: Int64?) throws(FileFailure) {
    guard let location, let file else { return }
    // Begin first, because discarding old bytes makes room.
    try file.begin(version: version, byteCount: wantedByteCount)
    record?.version = version
    isResumable = resumes && (version.isResumable || version.lastModified != nil)
    schedule = SyncSchedule(wantedByteCount: wantedByteCount, now: .now)
    if let wantedByteCount, let available = location.availableByteCount,
      wantedByteCount > available
    {
      file.remove()
      throw FileFailure(
        code: .destination,
        reason:
          "'\(location.path)' needs \(humanBytes(wantedByteCount)), and only \(humanBytes(available)) "
          + "are free there",
        errno: ENOSPC)
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure) {
    // Waiting costs the disk no time, because the finished file is synced in any case. Bytes that
    // cannot be resumed are lost in a power failure even if they are on the disk.
    try settleSync(waits: isResumable && schedule.isFull)
    try file?.store(bytes, at: offset)
    schedule.wrote(Int64(bytes.count))
    syncIfDue()
  }

  func recordLength(_ length: Int64) throws(FileFailure) {
    try file?.recordLength(length)
  }

  /// Starts a sync of the stored bytes on a separate thread.
  private func syncIfDue() {
    guard sync == nil, schedule.isDue(now: .now), let next = file?.makeDataSync() else { return }
    sync = SyncInProgress(next)
    if sync != nil { schedule.began() }
  }

  /// Records what a sync has brought to the disk once it has ended; with `waits`, waits for that.
  ///
  /// - Throws: the failure of this sync, or of an earlier one.
  private func settleSync(waits: Bool) throws(FileFailure) {
    if let sync, waits || sync.isOver {
      self.sync = nil
      schedule.ended(now: .now)
      syncError = syncError ?? sync.wait()
      if syncError == nil { file?.commit(sync.sync) }
    }
    if let syncError, let file { throw file.syncFailure(syncError) }
  }

  var canDigest: Bool { true }

  func digester(
    of range: ByteRange, algorithm: Checksum.Algorithm
  ) -> (@Sendable () throws(FileFailure) -> Checksum)? {
    guard let location, let descriptor = file?.descriptor else { return nil }
    return { () throws(FileFailure) -> Checksum in
      do throws(ErrorNumber) {
        return try RunningDigest.ofFile(descriptor, range: range, algorithm: algorithm)
      } catch {
        throw location.failure("cannot read '\(location.partPath)'", error)
      }
    }
  }

  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8] {
    guard let file, let location else { return [] }
    // Only the sync in progress gets the errors that it finds.
    try settleSync(waits: true)
    if let checksum, let descriptor = file.descriptor {
      let found: Checksum
      do throws(ErrorNumber) {
        found = try RunningDigest.ofFile(
          descriptor, range: 0..<length, algorithm: checksum.algorithm)
      } catch {
        throw location.failure("cannot read '\(location.partPath)'", error)
      }
      do throws(FileFailure) {
        try verify(
          found, is: checksum, of: "'\(location.path)'", remark: "the download was discarded")
      } catch {
        // Resuming wrong bytes would fail forever.
        file.remove()
        throw error
      }
    }
    let replaced: FilePlacement.Replacement =
      existing == .replace ? .anything : result.map { .result($0) } ?? .nothing
    let modified = setsModificationTime ? record?.version.lastModified : nil
    try file.finish(
      length: length, replacing: replaced, result: record,
      modified: modified.flatMap { HTTPDate.secondsSince1970($0) })
    letGo()
    return []
  }

  func release(_ error: TransferError?) {
    do throws(FileFailure) {
      try settleSync(waits: false)
    } catch {
      file?.hasSyncFailed = true
    }
    file?.release()
    letGo()
  }

  /// Closes the directory: a transfer that has ended holds no descriptors.
  private func letGo() {
    file = nil
    location = nil
    result = nil
  }

  func remove() {
    // This is the partial file that a transfer which never ran, or has ended, would have resumed.
    if file == nil,
      let location = try? FileLocation(path: path, inside: base, creatingMissing: false)
    {
      file = PartialFile(location: location, identity: identity, source: source)
    }
    file?.remove()
    letGo()
  }
}
