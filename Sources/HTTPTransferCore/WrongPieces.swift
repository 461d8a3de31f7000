/// The pieces of a file that were wrong and are not right yet.
///
/// A server may send thousands of wrong pieces. Every question here costs at most O(log n).
struct WrongPieces: Sendable {
  /// The pieces that are to be fetched again, ascending.
  private(set) var suspects: [Int] = []
  /// The pieces that no server is left for.
  private(set) var lost: Set<Int> = []
  /// The bytes of all of them.
  private(set) var extents = ExtentSet()

  func contains(_ piece: Int) -> Bool {
    if lost.contains(piece) { return true }
    let index = place(of: piece)
    return index < suspects.count && suspects[index] == piece
  }

  /// Records that a piece is wrong.
  ///
  /// - Parameters:
  ///   - piece: its number.
  ///   - range: its bytes.
  ///   - isLost: whether no server is left for it.
  mutating func insert(_ piece: Int, _ range: ByteRange, isLost: Bool) {
    remove(piece, range)
    extents.insert(range)
    if isLost {
      lost.insert(piece)
    } else {
      suspects.insert(piece, at: place(of: piece))
    }
  }

  mutating func remove(_ piece: Int, _ range: ByteRange) {
    guard contains(piece) else { return }
    extents.remove(range)
    if lost.remove(piece) == nil { suspects.remove(at: place(of: piece)) }
  }

  /// The index of `piece` in ``suspects``, or where it would be inserted.
  private func place(of piece: Int) -> Int {
    var (low, high) = (0, suspects.count)
    while low < high {
      let middle = (low + high) / 2
      if suspects[middle] < piece { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
