internal import HTTPTransferCore

/// Discards a body of which only the head, the arrival or the checksum matters.
///
/// `@unchecked Sendable`: see ``BodySink`` for its threads.
final class DiscardSink: BodySink, @unchecked Sendable {
  private let algorithm: Checksum.Algorithm?
  private var digest: RunningDigest?

  /// - Parameter checksum: the expected checksum of the body; nil for none.
  init(checksum: Checksum?) { algorithm = checksum?.algorithm }

  /// A hash needs its bytes in order.
  var isRandomAccess: Bool { algorithm == nil }

  func prepare() throws(FileFailure) -> PartialFile.Remains? { nil }

  func begin(version: ContentVersion, wantedByteCount: Int64?) throws(FileFailure) {
    digest = algorithm.map { RunningDigest($0) }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure) {
    digest?.update(bytes)
  }

  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8] {
    if let checksum, let found = digest?.finish() {
      try verify(found, is: checksum, of: "the body")
    }
    return []
  }

  func release(_ error: TransferError?) {}
  func remove() {}
}
