/// Limits what one exchange processes in one turn of the network thread's loop.
///
/// Only that thread uses it.
///
/// One read of a socket may contain a hundred thousand chunks of one byte each, and libcurl reads a
/// hundred times before it turns to another exchange: all others would wait for seconds. So after
/// many small pieces, an exchange is paused until the next turn. libcurl keeps the rest of its
/// buffer and then offers it in pieces of 16 KiB.
package struct BodyTurns {
  /// The maximum number of small pieces of an exchange per turn: they take a fraction of a
  /// millisecond.
  package static let pieceLimit = 256

  /// Pieces below this size are small; of larger ones, a turn has at most some thousands.
  package static let smallByteCount = 4096

  private var counts: [ExchangeID: Int] = [:]

  package init() {}

  /// Whether a piece of an exchange's body may pass in this turn; if not, pause the exchange.
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
  /// - Returns: the exchanges that waited for it.
  package mutating func begin() -> [ExchangeID] {
    guard !counts.isEmpty else { return [] }
    let waiting = counts.filter { $0.value > Self.pieceLimit }.map(\.key)
    counts.removeAll(keepingCapacity: true)
    return waiting
  }
}
