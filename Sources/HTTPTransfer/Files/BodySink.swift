internal import HTTPTransferCore

/// Receives the bytes of a response's body, by their offsets from the first wanted byte.
///
/// ``BodyStore`` calls its methods one at a time, in order, on a thread that may wait for the disk
/// if there is one. Any thread may read ``isFull``, ``isRandomAccess``, ``canBeginAnew`` and
/// ``canDigest`` at any time.
protocol BodySink: AnyObject, Sendable {
  /// Checks whether the destination can be written, and returns bytes that can be resumed.
  func prepare() throws(FileFailure) -> PartialFile.Remains?

  /// Why existing bytes were not resumed; nil if there was no such refusal.
  var refusal: String? { get }

  /// The version of a complete file at the destination, which stays if the server still has it.
  ///
  /// Nil if there is none, or if it must be fetched anyway.
  var earlierVersion: ContentVersion? { get }

  /// Ends with success, and keeps the file of ``earlierVersion``.
  ///
  /// - Returns: its length.
  func keepEarlier() throws(FileFailure) -> Int64

  /// Begins at the first byte and discards existing bytes.
  func begin(version: ContentVersion, wantedByteCount: Int64?) throws(FileFailure)

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure)

  /// Records a length that became known after the beginning.
  func recordLength(_ length: Int64) throws(FileFailure)

  /// Whether no more bytes may be written now; the sink reports when there is room again.
  var isFull: Bool { get }

  /// Whether bytes can be written in any order and more than once.
  var isRandomAccess: Bool { get }

  /// Whether ``begin(version:wantedByteCount:)`` may be called again: no byte was handed on.
  var canBeginAnew: Bool { get }

  /// Whether ``digester(of:algorithm:)`` is available.
  var canDigest: Bool { get }

  /// Returns a function that hashes stored bytes, on any thread, while they are not written to.
  ///
  /// - Returns: nil if they cannot be read again.
  func digester(
    of range: ByteRange, algorithm: Checksum.Algorithm
  ) -> (@Sendable () throws(FileFailure) -> Checksum)?

  /// Checks the complete bytes and hands them over.
  ///
  /// - Returns: the bytes, if the destination is memory.
  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8]

  /// Ends without success; bytes that can be resumed stay.
  func release(_ error: TransferError?)

  /// Ends and removes the stored bytes.
  func remove()
}

extension BodySink {
  var refusal: String? { nil }
  var earlierVersion: ContentVersion? { nil }
  func keepEarlier() throws(FileFailure) -> Int64 { 0 }
  var isFull: Bool { false }
  var isRandomAccess: Bool { true }
  var canBeginAnew: Bool { true }
  var canDigest: Bool { false }
  func digester(
    of range: ByteRange, algorithm: Checksum.Algorithm
  ) -> (@Sendable () throws(FileFailure) -> Checksum)? { nil }
  func recordLength(_ length: Int64) throws(FileFailure) {}
}

/// Compares a calculated checksum with the expected one.
///
/// - Parameters:
///   - found: the calculated checksum.
///   - wanted: the expected checksum.
///   - name: what was hashed, for the message.
///   - remark: what has become of it, for the message.
/// - Throws: ``FileFailure`` if the two differ.
func verify(
  _ found: Checksum, is wanted: Checksum, of name: String, remark: String? = nil
) throws(FileFailure) {
  guard found != wanted else { return }
  throw FileFailure(
    code: .checksumMismatch,
    reason: "checksum mismatch for \(name): expected \(wanted), got \(found)"
      + (remark.map { "; \($0)" } ?? ""),
    errno: 0)
}
