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
  /// - Returns: nil where it is malformed, or of another algorithm or piece length than those.
  init?(option: some StringProtocol, after earlier: PieceHashes?) {
    let fields = String(option).split(
      separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard fields.count == 3, let algorithm = Checksum.Algorithm(named: fields[0]),
      let length = Int64(digits: fields[1]), length <= Int64.greatestFileOffset,
      earlier == nil || (earlier?.algorithm == algorithm && earlier?.pieceByteCount == length)
    else { return nil }
    var digests = earlier?.digests ?? []
    for word in fields[2].split(separator: ",", omittingEmptySubsequences: false) {
      guard let checksum = try? Checksum(algorithm: algorithm, hexadecimal: word) else {
        return nil
      }
      digests.append(checksum.digest)
    }
    self.init(algorithm: algorithm, pieceByteCount: length, digests: digests)
  }
}
