internal import HTTPTransferCore

/// Throws a body away, of which only the head, or that it is there, matters.
final class DiscardSink: BodySink, Sendable {
  func prepare() throws(FileFailure) -> PartialFile.Remains? { nil }
  func begin(version: ContentVersion, wantedByteCount: Int64?) throws(FileFailure) {}
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure) {}
  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8] { [] }
  func release(_ error: TransferError?) {}
  func remove() {}
}
