import HTTPTransferCore
import Testing

@Suite struct ReadAheadHistoryTests {
  private static let mebibyte: Int64 = 1 << 20

  private func history(_ usages: [(fetched: Int64, read: Int64)]) -> ReadAheadHistory {
    var history = ReadAheadHistory()
    for usage in usages { history.note(fetched: usage.fetched, read: usage.read, length: nil) }
    return history
  }

  @Test func readersAreTrustedUntilSomeHaveGoneEarly() {
    let early = (fetched: 10 * Self.mebibyte, read: Self.mebibyte)
    #expect(history([]).trust == .usual)
    #expect(history([early]).trust == .usual)
    #expect(history([early, early]).trust == .usual)
    #expect(history([early, early, early]).trust == .low)
  }

  @Test func whoReadsWhatWasFetchedIsTrustedAgain() {
    let early = (fetched: 10 * Self.mebibyte, read: Self.mebibyte)
    let whole = (fetched: 10 * Self.mebibyte, read: 12 * Self.mebibyte)
    let cautious = Array(repeating: early, count: 100)
    #expect(history(cautious).trust == .low)
    #expect(history(cautious + [whole, whole]).trust == .usual)
    #expect(history(Array(repeating: whole, count: 100) + [early, early]).trust == .usual)
    // The caution itself makes readers fetch no more than they read.
    let frugal = (fetched: 2 * Self.mebibyte, read: 2 * Self.mebibyte)
    #expect(history(cautious + Array(repeating: frugal, count: 100)).trust == .low)
  }

  @Test func smallAndStrangeFiguresSayNothingOrHoldTheirBounds() {
    #expect(history(Array(repeating: (fetched: 4096, read: 0), count: 100)).trust == .usual)
    #expect(history([(fetched: .max, read: .max), (fetched: -1, read: .min)]).trust == .usual)
    #expect(history(Array(repeating: (fetched: .max, read: .min), count: 3)).trust == .low)
  }

  @Test func aCautiousWindowBeginsWhereProgramsThatOnlyLookHaveGone() {
    var table = SequentialReaders()
    table.trust = .low
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
    table.trust = .usual
    #expect(table.readers.map(\.window) == [8 * Self.mebibyte])
  }

  @Test func afterTwoFilesThatWereReadToTheirEndsTheNextOneIsTrustedUntilOneIsNot() {
    var history = ReadAheadHistory()
    let length = Self.mebibyte
    history.note(fetched: length, read: length, length: length)
    #expect(history.trust == .usual)
    history.note(fetched: length, read: length, length: length)
    #expect(history.trust == .high)
    // Bytes from the cache are no evidence.
    history.note(fetched: 0, read: 4096, length: length)
    #expect(history.trust == .high)
    history.note(fetched: 16384, read: 4096, length: length)
    #expect(history.trust == .usual)
    history.note(fetched: length, read: length, length: nil)
    history.note(fetched: length, read: length, length: nil)
    #expect(history.trust == .usual)
  }

  @Test func whoLooksAtEverySecondFileIsNotTrusted() {
    var history = ReadAheadHistory()
    for _ in 0..<100 {
      history.note(fetched: Self.mebibyte, read: Self.mebibyte, length: Self.mebibyte)
      #expect(history.trust == .usual)
      history.note(fetched: 16384, read: 4096, length: Self.mebibyte)
      #expect(history.trust == .usual)
    }
  }

  @Test func aTrustedReaderHasTheFirstMegabytesAtOnceWhereHeBeginsAtTheStart() {
    var table = SequentialReaders()
    table.trust = .high
    table.note(0..<131072)
    #expect(table.readers.map(\.window) == [4 * Self.mebibyte])
    var middle = SequentialReaders()
    middle.trust = .high
    middle.note(Self.mebibyte..<Self.mebibyte + 131072)
    #expect(middle.readers.map(\.window) == [0])
    // A reader that skips more than it reads is known after its second read.
    table.note(1_000_000..<1_004_096)
    #expect(table.readers.map(\.window) == [0])
  }
}
