import HTTPTransferCore
import Testing

@Suite struct ReadAheadHistoryTests {
  private static let mebibyte: Int64 = 1 << 20

  private func history(_ usages: [(fetched: Int64, read: Int64)]) -> ReadAheadHistory {
    var history = ReadAheadHistory()
    for usage in usages { history.note(fetched: usage.fetched, read: usage.read) }
    return history
  }

  @Test func readersAreTrustedUntilSomeHaveGoneEarly() {
    let early = (fetched: 10 * Self.mebibyte, read: Self.mebibyte)
    #expect(!history([]).isCautious)
    #expect(!history([early]).isCautious)
    #expect(!history([early, early]).isCautious)
    #expect(history([early, early, early]).isCautious)
  }

  @Test func whoReadsWhatWasFetchedIsTrustedAgain() {
    let early = (fetched: 10 * Self.mebibyte, read: Self.mebibyte)
    let whole = (fetched: 10 * Self.mebibyte, read: 12 * Self.mebibyte)
    let cautious = Array(repeating: early, count: 100)
    #expect(history(cautious).isCautious)
    #expect(!history(cautious + [whole, whole]).isCautious)
    #expect(!history(Array(repeating: whole, count: 100) + [early, early]).isCautious)
    // Caution itself has readers find no more than they read.
    let frugal = (fetched: 2 * Self.mebibyte, read: 2 * Self.mebibyte)
    #expect(history(cautious + Array(repeating: frugal, count: 100)).isCautious)
  }

  @Test func smallAndStrangeFiguresSayNothingOrHoldTheirBounds() {
    #expect(!history(Array(repeating: (fetched: 4096, read: 0), count: 100)).isCautious)
    #expect(!history([(fetched: .max, read: .max), (fetched: -1, read: .min)]).isCautious)
    #expect(history(Array(repeating: (fetched: .max, read: .min), count: 3)).isCautious)
  }

  @Test func aCautiousWindowBeginsWhereProgramsThatOnlyLookHaveGone() {
    var table = StreamTable()
    table.isCautious = true
    var position: Int64 = 0
    while position < Self.mebibyte {
      table.note(position..<position + 131072)
      position += 131072
      #expect(table.readers.map(\.window) == [0])
    }
    while position < 8 * Self.mebibyte {
      table.note(position..<position + 131072)
      position += 131072
    }
    #expect(table.readers.map(\.window) == [7 * Self.mebibyte])
    table.isCautious = false
    #expect(table.readers.map(\.window) == [8 * Self.mebibyte])
  }
}
