internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import HTTPTypes

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
  private var lastSync = ContinuousClock.now
  private var isSyncing = false

  /// So many bytes, or so much time, may pass between two commits: what a loss of power may cost.
  ///
  /// Small enough that the disk works while the network does, and little is left for the end.
  private static let syncByteCount: Int64 = 16 << 20
  private static let syncInterval = Duration.seconds(2)

  init(path: String, request: Request, client: HTTPClient) {
    self.path = path
    self.client = client
    resumes = request.resumes && !request.decodesContent && request.method == .get
    let range = request.range.map { " \($0.rangeField)" } ?? ""
    identity = request.url.withoutUserInfo + range
    source = request.url.redacted
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
    if let wantedByteCount, let available = location.availableByteCount,
      wantedByteCount > available
    {
      throw FileFailure(
        code: .destination,
        reason: "'\(path)' needs \(wantedByteCount) bytes, and only \(available) are free there",
        errno: ENOSPC)
    }
    try file.begin(version: version)
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure) {
    try file?.store(bytes, at: offset)
    uncommittedByteCount += Int64(bytes.count)
    commitIfDue()
  }

  func recordLength(_ length: Int64) throws(FileFailure) {
    try file?.recordLength(length)
  }

  /// Lets a thread of its own sync what is there, then records that.
  private func commitIfDue() {
    let now = ContinuousClock.now
    guard !isSyncing,
      uncommittedByteCount >= Self.syncByteCount || now - lastSync >= Self.syncInterval,
      let sync = file?.makeDataSync()
    else { return }
    isSyncing = true
    uncommittedByteCount = 0
    spawnThread(name: "httpfs-sync") { [self] in
      let isDurable = sync.run()
      client.perform { [self] in
        if isDurable { file?.commit(sync) }
        isSyncing = false
        lastSync = .now
      }
    }
  }

  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8] {
    guard let file, let location else { return [] }
    if let checksum, let descriptor = file.descriptor {
      let found: Checksum
      do throws(ErrorNumber) {
        found = try RunningDigest.ofFile(
          descriptor, byteCount: length, algorithm: checksum.algorithm)
      } catch {
        throw location.failure("cannot read '\(location.partPath)'", error)
      }
      do throws(FileFailure) {
        try verify(found, is: checksum, of: "'\(path)'")
      } catch {
        // Going on with wrong bytes would fail for ever.
        file.remove()
        throw error
      }
    }
    try file.finish(length: length)
    return []
  }

  func release(_ error: TransferError?) { file?.release() }

  func remove() { file?.remove() }
}
