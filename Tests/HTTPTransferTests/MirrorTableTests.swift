import HTTPTransfer
import HTTPTransferCore
import Testing

/// Whom a download asks next.
@Suite struct MirrorTableTests {
  private let start = ContinuousClock.now

  private func table(_ count: Int) throws -> MirrorTable {
    MirrorTable(try (0..<count).map { try RemoteURL("http://h\($0)/x") })
  }

  @Test("The first is asked while nothing is known, the next while it rests")
  func order() throws {
    var table = try table(3)
    #expect(table.next(activeCounts: [:], spreads: false, now: start) == 0)
    table.failed(0, until: start + .seconds(1))
    #expect(table.next(activeCounts: [0: 5], spreads: false, now: start) == 1)
    #expect(table.next(activeCounts: [:], spreads: false, now: start + .seconds(1)) == 0)
    #expect(table[0].failureCount == 1)
    table.succeeded(0, rate: nil)
    #expect(table[0].failureCount == 0)
    #expect(table.rest(of: 0, now: start) == .zero)
  }

  @Test("Where all rest, the one that wakes first is asked, and how long that takes is known")
  func allRest() throws {
    var table = try table(2)
    table.failed(0, until: start + .seconds(3))
    table.failed(1, until: start + .seconds(2))
    #expect(table.next(activeCounts: [:], spreads: true, now: start) == 1)
    #expect(table.rest(of: 1, now: start) == .seconds(2))
  }

  @Test("Requests are spread by what each connection brings, and each mirror is tried")
  func spreading() throws {
    var table = try table(2)
    for index in 0..<2 { table[index].version = ContentVersion() }
    table.succeeded(0, rate: 3e6)
    #expect(table.next(activeCounts: [0: 1], spreads: true, now: start) == 1)
    table.succeeded(1, rate: 1e6)
    #expect(table.next(activeCounts: [0: 1, 1: 1], spreads: true, now: start) == 0)
    #expect(table.next(activeCounts: [0: 2, 1: 1], spreads: true, now: start) == 0)
    #expect(table.next(activeCounts: [0: 3], spreads: true, now: start) == 1)
  }

  @Test("One that has not shown yet that it has the same bytes gets one request to do so")
  func unproven() throws {
    var table = try table(2)
    table[0].version = ContentVersion()
    table.succeeded(0, rate: 1)
    #expect(table.next(activeCounts: [0: 7], spreads: true, now: start) == 1)
    #expect(table.next(activeCounts: [0: 7, 1: 1], spreads: true, now: start) == 0)
  }

  @Test("One that refuses more connections gets no more")
  func limits() throws {
    var table = try table(2)
    for index in 0..<2 { table[index].version = ContentVersion() }
    table.succeeded(0, rate: 9e6)
    table.succeeded(1, rate: 1)
    table.limit(0, to: 2)
    #expect(table.next(activeCounts: [0: 1], spreads: true, now: start) == 0)
    #expect(table.next(activeCounts: [0: 2], spreads: true, now: start) == 1)
  }

  @Test("What is excluded is not asked again; what was set aside is, when everything begins anew")
  func exclusion() throws {
    var table = try table(3)
    table.exclude(0, reason: "HTTP 404")
    table.setAside(1, reason: "other")
    #expect(table.next(activeCounts: [:], spreads: true, now: start) == 2)
    #expect(!table.hasAnother(than: 2))
    #expect(table.failures(besides: 2) == "http://h0/x (HTTP 404), http://h1/x (other)")
    table.exclude(2, reason: "gone")
    #expect(table.next(activeCounts: [:], spreads: false, now: start) == nil)
    #expect(table.hasSetAside)
    table.forgetVersions()
    #expect(!table.hasSetAside)
    #expect(table.next(activeCounts: [:], spreads: false, now: start) == 1)
  }

  @Test("The one in focus is asked alone, until it is excluded")
  func focus() throws {
    var table = try table(2)
    table.focus = 1
    table.failed(1, until: start + .seconds(9))
    #expect(table.next(activeCounts: [1: 9], spreads: true, now: start) == 1)
    table.exclude(1, reason: "wrong")
    #expect(table.next(activeCounts: [:], spreads: true, now: start) == 0)
  }

  @Test("The same URL twice is one mirror")
  func duplicates() throws {
    let url = try RemoteURL("http://h/x")
    #expect(MirrorTable([url, url]).count == 1)
  }
}

/// Which pieces are to be compared, and who has brought them.
@Suite struct PieceLedgerTests {
  private let hashes: PieceHashes

  init() throws {
    hashes = try #require(
      PieceHashes(
        algorithm: .md5, pieceByteCount: 10,
        digests: [[UInt8]](repeating: [UInt8](repeating: 0, count: 16), count: 3)))
  }

  @Test("A piece is to be compared once, when its last byte is there")
  func completion() throws {
    var ledger = try #require(PieceLedger(hashes: hashes, length: 25))
    var extents = ExtentSet()
    func store(_ range: ByteRange, _ mirror: Int) -> [Int] {
      extents.insert(range)
      return ledger.stored(range, by: mirror, extents: extents)
    }
    #expect(store(0..<9, 0) == [])
    #expect(store(9..<21, 1) == [0, 1])
    #expect(store(21..<25, 0) == [2])
    #expect(ledger.range(of: 2) == 20..<25)
    #expect(ledger.verified(1) == nil)
    #expect(ledger.refuted(0) == [0, 1])
    #expect(ledger.refuted(0) == [])
    #expect(!ledger.isComplete)
    extents.remove(0..<10)
    #expect(store(0..<10, 1) == [0])
    // The other one of the two must have been wrong.
    #expect(ledger.verified(0) == 0)
    #expect(ledger.verified(2) == nil)
    #expect(ledger.isComplete)
  }

  @Test("A file of another number of pieces has no ledger", arguments: [0, 20, 31])
  func coverage(length: Int64) {
    #expect(PieceLedger(hashes: hashes, length: length) == nil)
  }
}
