internal import HTTPTransferCore

/// Gathers a body in memory.
///
/// `@unchecked Sendable`: see ``BodySink`` for its threads.
final class MemorySink: BodySink, @unchecked Sendable {
  private let limit: Int
  private var bytes: [UInt8] = []

  init(limit: Int) { self.limit = limit }

  func prepare() throws(FileFailure) -> PartialFile.Remains? { nil }

  func begin(version: ContentVersion, wantedByteCount: Int64?) throws(FileFailure) {
    bytes = []
    guard let wantedByteCount else { return }
    guard wantedByteCount <= limit else { throw tooLarge }
    bytes.reserveCapacity(Int(wantedByteCount))
  }

  func write(_ piece: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure) {
    let (end, overflow) = offset.addingReportingOverflow(Int64(piece.count))
    guard !overflow, end <= limit else { throw tooLarge }
    if bytes.count == offset { return bytes.append(contentsOf: piece) }
    if bytes.count < end {
      bytes.append(contentsOf: repeatElement(0, count: Int(end) - bytes.count))
    }
    bytes.withUnsafeMutableBytes { target in
      UnsafeMutableRawBufferPointer(rebasing: target[Int(offset)..<Int(end)]).copyMemory(
        from: piece)
    }
  }

  var canDigest: Bool { true }

  func digester(
    of range: ByteRange, algorithm: Checksum.Algorithm
  ) -> (@Sendable () throws(FileFailure) -> Checksum)? {
    guard range.upperBound <= bytes.count else { return nil }
    // Copy the bytes, because the array keeps growing.
    let part = Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    return {
      let digest = RunningDigest(algorithm)
      part.withUnsafeBytes { digest.update($0) }
      return digest.finish()
    }
  }

  private var tooLarge: FileFailure {
    FileFailure(
      code: .tooLarge,
      reason: "the body is longer than the \(limit) bytes that memory was allowed for it", errno: 0)
  }

  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8] {
    if let checksum {
      let digest = RunningDigest(checksum.algorithm)
      bytes.withUnsafeBytes { digest.update($0) }
      try verify(digest.finish(), is: checksum, of: "the body")
    }
    defer { bytes = [] }
    return bytes
  }

  func release(_ error: TransferError?) { bytes = [] }
  func remove() { bytes = [] }
}
