internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import HTTPTypes
internal import Synchronization

/// Writes to a file that appears when it is whole; see ``PartialFile``.
///
/// `@unchecked Sendable`: see ``BodySink`` for its threads.
final class FileSink: BodySink, @unchecked Sendable {
  private let path: String
  private let identity: String
  private let source: String
  private let resumes: Bool
  private let client: HTTPClient
  private var location: FileLocation?
  private var file: PartialFile?
  private var uncommittedByteCount: Int64 = 0
  /// How much is yet to be written; nil where that is not known.
  private var missingByteCount: Int64?
  private var lastSync = ContinuousClock.now
  private var isSyncing = false
  /// Whether the file is being finished, so that nothing more may be recorded.
  private var isFinishing = false
  /// The first failure of a sync; held while one runs, so that who finishes waits for its result.
  private let syncFailure = Mutex<ErrorNumber?>(nil)
  /// Whether ``syncFailure`` is set, for those who must not wait.
  private let hasSyncFailed = Atomic<Bool>(false)

  /// So many bytes, or so much time, may pass between two commits: what a loss of power may cost.
  ///
  /// Small enough that the disk works while the network does.
  private static let syncByteCount: Int64 = 16 << 20
  /// Towards the end commits come closer, so that the last sync, for which the user waits, has little
  /// left to do.
  private static let leastSyncByteCount: Int64 = 1 << 20
  private static let syncInterval = Duration.seconds(2)

  init(path: String, request: Request, client: HTTPClient) {
    self.path = path
    self.client = client
    resumes = request.resumes && !request.decodesContent && request.method == .get
    let range = request.range.map { " \($0.rangeField)" } ?? ""
    // A URL that is signed anew is that of the same bytes.
    identity = request.url.withoutSignature + range + Self.hashes(of: request)
    source = request.url.redacted
  }

  /// The hashes that vouch for bytes which no validator vouches for: those of several mirrors, and those of
  /// pieces that are not compared yet.
  ///
  /// A transfer without them must not go on with such bytes.
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
    let location = try FileLocation(path: path)
    let file = PartialFile(location: location, identity: identity, source: source)
    self.location = location
    self.file = file
    guard resumes else { return nil }
    let remains = try file.recover()
    refusal = file.refusal
    return remains
  }

  func begin(version: ContentVersion, wantedByteCount: Int64?) throws(FileFailure) {
    guard let location, let file else { return }
    // First, because what is thrown away makes room.
    try file.begin(version: version)
    isFinishing = false
    missingByteCount = wantedByteCount
    if let wantedByteCount, let available = location.availableByteCount,
      wantedByteCount > available
    {
      file.remove()
      throw FileFailure(
        code: .destination,
        reason: "'\(path)' needs \(wantedByteCount) bytes, and only \(available) are free there",
        errno: ENOSPC)
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure) {
    if hasSyncFailed.load(ordering: .relaxed), let failure = failedSync() { throw failure }
    try file?.store(bytes, at: offset)
    uncommittedByteCount += Int64(bytes.count)
    missingByteCount = missingByteCount.map { $0 - Int64(bytes.count) }
    commitIfDue()
  }

  func recordLength(_ length: Int64) throws(FileFailure) {
    try file?.recordLength(length)
  }

  /// Lets a thread of its own sync what is there, then records that.
  private func commitIfDue() {
    let now = ContinuousClock.now
    let missing = missingByteCount ?? Self.syncByteCount
    let enough = min(Self.syncByteCount, max(Self.leastSyncByteCount, missing))
    // The last sync is that of the finished file.
    guard !isSyncing, missing > 0,
      uncommittedByteCount >= enough || now - lastSync >= Self.syncInterval,
      let sync = file?.makeDataSync()
    else { return }
    isSyncing = true
    uncommittedByteCount = 0
    let isStarted = spawnThread(name: "httpfs-sync") { [self] in
      let isDurable = syncFailure.withLock { failure in
        do throws(ErrorNumber) {
          try sync.run()
        } catch {
          failure = error
          hasSyncFailed.store(true, ordering: .relaxed)
        }
        return failure == nil
      }
      client.perform { [self] in
        if isDurable, !isFinishing { file?.commit(sync) }
        isSyncing = false
        lastSync = .now
      }
    }
    if !isStarted { isSyncing = false }
  }

  /// The failure of a sync that is over.
  private func failedSync() -> FileFailure? {
    syncFailure.withLock { $0 }.flatMap { file?.syncFailure($0) }
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

  func stopCommitting() { isFinishing = true }

  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8] {
    guard let file, let location else { return [] }
    // A sync under way reports what it finds to itself alone.
    if let failure = failedSync() { throw failure }
    if let checksum, let descriptor = file.descriptor {
      let found: Checksum
      do throws(ErrorNumber) {
        found = try RunningDigest.ofFile(
          descriptor, range: 0..<length, algorithm: checksum.algorithm)
      } catch {
        throw location.failure("cannot read '\(location.partPath)'", error)
      }
      do throws(FileFailure) {
        try verify(found, is: checksum, of: "what came for '\(path)', and was thrown away,")
      } catch {
        // Going on with wrong bytes would fail for ever.
        file.remove()
        throw error
      }
    }
    try file.finish(length: length)
    letGo()
    return []
  }

  func release(_ error: TransferError?) {
    if hasSyncFailed.load(ordering: .relaxed) { file?.hasSyncFailed = true }
    file?.release()
    letGo()
  }

  /// Closes the directory: a transfer that has ended holds no descriptor.
  private func letGo() {
    file = nil
    location = nil
  }

  func remove() {
    // What a transfer that never ran, or has ended, would have gone on with.
    if file == nil, let location = try? FileLocation(path: path, creatingMissing: false) {
      file = PartialFile(location: location, identity: identity, source: source)
    }
    file?.remove()
    letGo()
  }
}
