/// The expected hashes of a file's pieces, from a Metalink.
public struct PieceHashes: Sendable, Hashable {
  public let algorithm: Checksum.Algorithm

  /// The length of every piece but the last, in bytes; greater than 0.
  public let pieceByteCount: Int64

  /// At least one digest, in the order of the pieces; each has `algorithm.digestByteCount` bytes.
  public private(set) var digests: [[UInt8]]

  /// The most pieces of a file.
  public static let maximumCount = 1 << 20

  /// - Returns: nil if the length of a digest is not the algorithm's, if there are no digests or
  ///   too many, or if the piece length is not positive.
  public init?(algorithm: Checksum.Algorithm, pieceByteCount: Int64, digests: [[UInt8]]) {
    guard pieceByteCount > 0, !digests.isEmpty, digests.count <= Self.maximumCount,
      digests.allSatisfy({ $0.count == algorithm.digestByteCount })
    else { return nil }
    self.algorithm = algorithm
    self.pieceByteCount = pieceByteCount
    self.digests = digests
  }

  /// Appends the digests of the next pieces.
  ///
  /// - Returns: false, with nothing appended, if a digest has a wrong length or there are too many.
  package mutating func append(_ more: [[UInt8]]) -> Bool {
    guard more.allSatisfy({ $0.count == algorithm.digestByteCount }),
      more.count <= Self.maximumCount - digests.count
    else { return false }
    digests += more
    return true
  }

  /// A text that distinguishes these hashes from others: algorithm, piece length, and all digests.
  ///
  /// - Returns: a line without spaces, about as long as all digests in hexadecimal.
  package var fingerprint: String {
    let words = digests.map { Checksum(algorithm: algorithm, digest: $0).hexadecimal }
    return "\(algorithm.rawValue)/\(pieceByteCount)/" + words.joined(separator: ".")
  }

  /// Whether the number of digests matches a file of `length` bytes.
  public func covers(length: Int64) -> Bool {
    guard length > 0 else { return false }
    return (length - 1) / pieceByteCount + 1 == Int64(digests.count)
  }

  /// The pieces that `range` touches; empty for an empty range.
  ///
  /// Bytes beyond the last piece belong to no piece.
  package func pieces(touching range: ByteRange) -> Range<Int> {
    guard !range.isEmpty else { return 0..<0 }
    let first = min(range.lowerBound / pieceByteCount, Int64(digests.count))
    let end = min((range.upperBound - 1) / pieceByteCount + 1, Int64(digests.count))
    return Int(first)..<Int(max(first, end))
  }

  /// The bytes of the piece `index` of a file of `length` bytes.
  package func range(ofPiece index: Int, length: Int64) -> ByteRange {
    let start = min(Int64(index) * pieceByteCount, length)
    return start..<(start + min(pieceByteCount, length - start))
  }
}
