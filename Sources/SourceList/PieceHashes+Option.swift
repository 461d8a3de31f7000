package import HTTPTransferCore

/// Piece hashes as options of a list: `pieces=sha-256:1048576:HEX,HEX…`, on as many lines as
/// needed.
extension PieceHashes {
  /// The number of hashes on a line, which keeps the line far below the limit.
  private static let countPerLine = 256

  /// The values of the options for these hashes.
  package var options: [String] {
    stride(from: 0, to: digests.count, by: Self.countPerLine).map { start in
      let words = digests[start..<min(digests.count, start + Self.countPerLine)].map {
        Checksum(algorithm: algorithm, digest: $0).hexadecimal
      }
      return "\(algorithm.rawValue):\(pieceByteCount):" + words.joined(separator: ",")
    }
  }

  /// Reads an option's value, which continues the hashes of earlier options.
  ///
  /// - Parameters:
  ///   - option: the value.
  ///   - pieces: the hashes so far; extended in place, because an option may add to a million.
  /// - Returns: false if the value is malformed, has another algorithm or piece length, or exceeds
  ///   the limit.
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
