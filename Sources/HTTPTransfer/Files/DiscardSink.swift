internal import HTTPTransferCore

/// Throws a body away, of which only the head, that it is there, or its checksum matters.
///
/// `@unchecked Sendable`: see ``BodySink`` for its threads.
final class DiscardSink: BodySink, @unchecked Sendable {
  private let algorithm: Checksum.Algorithm?
  private var digest: RunningDigest?

  /// - Parameter checksum: what the body will have to hash to; nil for anything.
  init(checksum: Checksum?) { algorithm = checksum?.algorithm }

  /// A hash takes its bytes in order.
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
