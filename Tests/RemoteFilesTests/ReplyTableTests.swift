import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// The replies that get the results of reads.
@Suite struct ReplyTableTests {
  @Test("Each read gets its own reply back, once, with what became of its deadline meanwhile")
  func takenOnce() {
    var table = ReplyTable()
    let (first, second) = (NullReply(), NullReply())
    let now = ContinuousClock.now
    var parked = [first, second].map { reply in
      table.keep(
        UnansweredRead(range: 0..<4096, since: now, deadline: now + .seconds(1), reply: reply))
    }
    parked[1].deadline += .seconds(5)
    let taken = [1, 1, 0, 0].map { table.take(parked[$0]) }
    #expect(taken[0]?.reply === second)
    #expect(taken[0]?.range == 0..<4096)
    #expect(taken[0]?.since == now)
    #expect(taken[0]?.deadline == now + .seconds(6))
    #expect(taken[2]?.reply === first)
    #expect(taken[1] == nil && taken[3] == nil)
  }
}
