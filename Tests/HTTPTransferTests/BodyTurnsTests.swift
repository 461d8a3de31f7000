import HTTPTransfer
import Testing

/// The share of one exchange in a turn of the network thread's loop.
@Suite struct BodyTurnsTests {
  private let one = ExchangeID(rawValue: 1)
  private let other = ExchangeID(rawValue: 2)

  /// The number of pieces, of `count`, that pass.
  private func passed(
    _ count: Int, of byteCount: Int, by id: ExchangeID, _ turns: inout BodyTurns
  ) -> Int {
    var passed = 0
    for _ in 0..<count where turns.admits(byteCount, of: id) { passed += 1 }
    return passed
  }

  @Test("So many small pieces pass in a turn, and the exchange goes on in the next one")
  func smallPieces() {
    var turns = BodyTurns()
    let limit = BodyTurns.pieceLimit
    #expect(passed(limit, of: 1, by: one, &turns) == limit)
    #expect(!turns.hasWaiting)
    #expect(passed(2, of: BodyTurns.smallByteCount - 1, by: one, &turns) == 0)
    #expect(turns.hasWaiting)
    #expect(passed(1, of: 1, by: other, &turns) == 1)
    let waiting = [turns.begin(), turns.begin()]
    #expect(waiting == [[one], []])
    #expect(!turns.hasWaiting)
    #expect(passed(limit + 1, of: 1, by: one, &turns) == limit)
  }

  @Test("Large pieces pass, however many there are")
  func largePieces() {
    var turns = BodyTurns()
    #expect(passed(100_000, of: BodyTurns.smallByteCount, by: one, &turns) == 100_000)
    #expect(!turns.hasWaiting)
  }
}
