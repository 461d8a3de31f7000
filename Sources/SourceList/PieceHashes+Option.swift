public import HTTPTransferCore

/// Piece hashes as options of a list: `pieces=sha-256:1048576:HEX,HEX…`, in as many lines as they need.
extension PieceHashes {
  /// How many hashes stand on a line, so that it stays far below the limit.
  private static let countPerLine = 256

  /// The values of the options that say the same.
  public var options: [String] {
    stride(from: 0, to: digests.count, by: Self.countPerLine).map { start in
      let words = digests[start..<min(digests.count, start + Self.countPerLine)].map {
        Checksum(algorithm: algorithm, digest: $0).hexadecimal
      }
      return "\(algorithm.rawValue):\(pieceByteCount):" + words.joined(separator: ",")
    }
  }

  /// Reads an option's value, which goes on with the hashes of the options before it.
  ///
  /// - Parameters:
  ///   - option: the value.
  ///   - pieces: the hashes so far; added to in place, because an option may bring one of a million.
  /// - Returns: false where it is malformed, of another algorithm or piece length than those, or one too
  ///   many.
  static func append(option: some StringProtocol, to pieces: inout PieceHashes?) -> Bool {
    let fields = String(option).split(
      separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard fields.count == 3, let algorithm = Checksum.Algorithm(named: fields[0]),
      let length = Int64(length: fields[1]),
      pieces == nil || (pieces?.algorithm == algorithm && pieces?.pieceByteCount == length)
    else { return false }
    var digests: [[UInt8]] = []
    for word in fields[2].split(separator: ",", omittingEmptySubsequences: false) {
      guard let checksum = try? Checksum(algorithm: algorithm, hexadecimal: word) else {
        return false
      }
      digests.append(checksum.digest)
    }
    guard pieces == nil else { return pieces?.append(digests) ?? false }
    pieces = PieceHashes(algorithm: algorithm, pieceByteCount: length, digests: digests)
    return pieces != nil
  }
}
