package import HTTPTransferCore

/// Which pieces of a download have been compared with their hashes, and who has brought the others.
///
/// A value without I/O.
package struct PieceLedger: Sendable {
  /// Stands for the bytes of an earlier run, of which nobody knows who brought them.
  package static let earlierRun = -1

  private enum State: UInt8 {
    /// Not all of it is there.
    case absent
    /// It is there and is to be compared.
    case present
    case verified
  }

  package let hashes: PieceHashes
  /// The length of the file in bytes.
  package let length: Int64
  private var states: [State]
  private var unverifiedCount: Int
  /// Who has brought bytes of a piece that is not verified.
  private var contributors: [Int: Set<Int>] = [:]
  /// Who had brought a piece that was wrong, where that were several.
  private var suspects: [Int: Set<Int>] = [:]

  /// A ledger without bytes; nil where a file of `length` bytes has another number of pieces.
  package init?(hashes: PieceHashes, length: Int64) {
    guard hashes.covers(length: length) else { return nil }
    self.hashes = hashes
    self.length = length
    states = Array(repeating: .absent, count: hashes.digests.count)
    unverifiedCount = states.count
  }

  /// Whether every piece has been verified.
  package var isComplete: Bool { unverifiedCount == 0 }

  /// The bytes of a piece.
  package func range(of piece: Int) -> ByteRange { hashes.range(ofPiece: piece, length: length) }

  /// Bytes have been stored.
  ///
  /// - Parameters:
  ///   - range: the bytes.
  ///   - mirror: who has brought them.
  ///   - extents: all that is there now.
  /// - Returns: the pieces that are to be compared now.
  package mutating func stored(_ range: ByteRange, by mirror: Int, extents: ExtentSet) -> [Int] {
    var complete: [Int] = []
    for piece in hashes.pieces(touching: range) where states[piece] == .absent {
      contributors[piece, default: []].insert(mirror)
      guard extents.contains(self.range(of: piece)) else { continue }
      states[piece] = .present
      complete.append(piece)
    }
    return complete
  }

  /// A piece hashes to what it should.
  ///
  /// - Returns: who must have made it wrong before, where that is certain.
  package mutating func verified(_ piece: Int) -> Int? {
    guard states[piece] == .present else { return nil }
    states[piece] = .verified
    unverifiedCount -= 1
    let honest = contributors.removeValue(forKey: piece) ?? []
    guard let suspected = suspects.removeValue(forKey: piece) else { return nil }
    let rest = suspected.subtracting(honest)
    return rest.count == 1 ? rest.first : nil
  }

  /// A piece does not hash to what it should, and is to be fetched again.
  ///
  /// - Returns: who has brought it.
  package mutating func refuted(_ piece: Int) -> Set<Int> {
    guard states[piece] == .present else { return [] }
    states[piece] = .absent
    let found = contributors.removeValue(forKey: piece) ?? []
    if found.count > 1 { suspects[piece] = found }
    return found
  }
}
