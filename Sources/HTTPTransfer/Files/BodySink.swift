internal import HTTPTransferCore

/// Where the bytes of a response's body go, by their offset from the first byte wanted.
///
/// ``BodyStore`` calls its methods one at a time, in order, on a thread that may wait for the disk if
/// there is one. ``isFull``, ``isRandomAccess``, ``canBeginAnew`` and ``canDigest`` may be asked for on
/// any thread at any time.
protocol BodySink: AnyObject, Sendable {
  /// Finds out whether the destination can be written, and what of it is there.
  func prepare() throws(FileFailure) -> PartialFile.Remains?

  /// Why what is there was not gone on with; nil where nothing was there.
  var refusal: String? { get }

  /// The version of the whole file that is there already, which the transfer leaves where the server
  /// still has it; nil where there is none, or where it must be fetched all the same.
  var earlierVersion: ContentVersion? { get }

  /// Ends with success: the file of ``earlierVersion`` stays.
  ///
  /// - Returns: its length.
  func keepEarlier() throws(FileFailure) -> Int64

  /// Begins at the first byte; what is there is thrown away.
  func begin(version: ContentVersion, wantedByteCount: Int64?) throws(FileFailure)

  /// Takes bytes.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure)

  /// The length has become known after the beginning.
  func recordLength(_ length: Int64) throws(FileFailure)

  /// Whether nothing more may be written now; the sink tells when that ends.
  var isFull: Bool { get }

  /// Whether bytes can be written in any order, and again.
  var isRandomAccess: Bool { get }

  /// Whether ``begin(version:wantedByteCount:)`` may come again after bytes: none has been handed on.
  var canBeginAnew: Bool { get }

  /// Whether ``digester(of:algorithm:)`` can be had.
  var canDigest: Bool { get }

  /// What hashes bytes that are there, on any thread, while nothing writes to them; nil where they cannot be
  /// read again.
  func digester(
    of range: ByteRange, algorithm: Checksum.Algorithm
  ) -> (@Sendable () throws(FileFailure) -> Checksum)?

  /// All is there: checks it and hands it over.
  ///
  /// - Returns: the bytes, where the destination is memory.
  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8]

  /// Ends without success; what can be gone on with stays.
  func release(_ error: TransferError?)

  /// Ends and removes what is there.
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

/// Compares what was calculated with what was asked for.
func verify(_ found: Checksum, is wanted: Checksum, of name: String) throws(FileFailure) {
  guard found != wanted else { return }
  throw FileFailure(
    code: .checksumMismatch,
    reason: "\(name) hashes to \(found), not to \(wanted)", errno: 0)
}
