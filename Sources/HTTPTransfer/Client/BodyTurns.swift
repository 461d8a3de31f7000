/// Bounds what one exchange takes of one turn of the network thread's loop; that thread's own.
///
/// A read of a socket may bring a hundred thousand chunks of a byte each, and libcurl reads a hundred times
/// before it looks at another exchange: everybody else would wait for seconds. So an exchange is paused
/// until the next turn once it has brought many small pieces. libcurl keeps what its buffer still holds of
/// them, and offers it in pieces of 16 KiB then.
package struct BodyTurns {
  /// How many small pieces an exchange brings in a turn: they take a fraction of a millisecond.
  package static let pieceLimit = 256

  /// Smaller ones are small: of others a turn brings thousands at most.
  package static let smallByteCount = 4096

  private var counts: [ExchangeID: Int] = [:]

  package init() {}

  /// Whether a piece of an exchange's body may pass in this turn; if not, the exchange is to be paused.
  package mutating func admits(_ byteCount: Int, of id: ExchangeID) -> Bool {
    guard byteCount < Self.smallByteCount else { return true }
    let count = counts[id, default: 0] + 1
    counts[id] = count
    return count <= Self.pieceLimit
  }

  /// Whether exchanges wait for the next turn.
  package var hasWaiting: Bool { counts.values.contains { $0 > Self.pieceLimit } }

  /// Begins the next turn.
  ///
  /// - Returns: the exchanges that have waited for it.
  package mutating func begin() -> [ExchangeID] {
    guard !counts.isEmpty else { return [] }
    let waiting = counts.filter { $0.value > Self.pieceLimit }.map(\.key)
    counts.removeAll(keepingCapacity: true)
    return waiting
  }
}
