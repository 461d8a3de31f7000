import HTTPTransferCore
import Testing

@Suite struct PieceTableTests {
  /// Ten pieces of 100 bytes, except the last one, which has 50.
  private func table() throws -> PieceTable {
    let hashes = try #require(
      PieceHashes(
        algorithm: .md5, pieceByteCount: 100,
        digests: (0..<10).map { [UInt8](repeating: UInt8($0), count: 16) }))
    return try #require(PieceTable(hashes: hashes, length: 950))
  }

  @Test("A range grows to whole pieces, and no farther than the file")
  func wholePieces() throws {
    let table = try table()
    #expect(table.wholePieces(around: 150..<151) == 100..<200)
    #expect(table.wholePieces(around: 100..<200) == 100..<200)
    #expect(table.wholePieces(around: 199..<201) == 100..<300)
    #expect(table.wholePieces(around: 901..<950) == 900..<950)
    #expect(table.wholePieces(around: 7..<7) == 7..<7)
  }

  @Test("A piece is checked once, when its last byte has arrived, whatever the order")
  func arrival() throws {
    var table = try table()
    #expect(table.note(150..<220, from: 0, extents: ExtentSet()).checks == [])
    let arrival = table.note(90..<160, from: 1, extents: ExtentSet())
    #expect(arrival.byteCount == 60)
    #expect(arrival.checks.map(\.range) == [100..<200])
    #expect(table.note(100..<200, from: 0, extents: ExtentSet()).checks == [])
    #expect(table.holes(in: 0..<300, extents: ExtentSet()) == [0..<90, 220..<300])
  }

  @Test("The piece that ends with the file is checked, too")
  func lastPiece() throws {
    var table = try table()
    #expect(table.note(900..<950, from: 0, extents: ExtentSet()).checks.map(\.piece) == [9])
  }

  @Test("A right piece is present and forgotten; an old check of it says nothing")
  func verified() throws {
    var table = try table()
    let check = try #require(table.note(0..<100, from: 0, extents: ExtentSet()).checks.first)
    #expect(table.settle(check, matches: true, trusted: [0]) == .verified)
    #expect(table.arrived.isEmpty)
    #expect(table.settle(check, matches: false, trusted: [0]) == .outdated)
    // Present bytes do not arrive a second time.
    #expect(table.note(0..<100, from: 0, extents: ExtentSet([0..<100])).checks == [])
  }

  @Test("Bytes that are gone while they are hashed are not judged")
  func forgotten() throws {
    var table = try table()
    let check = try #require(table.note(0..<100, from: 0, extents: ExtentSet()).checks.first)
    table.forget(40..<60)
    #expect(table.settle(check, matches: false, trusted: [0, 1]) == .outdated)
    let again = try #require(table.note(40..<60, from: 0, extents: ExtentSet()).checks.first)
    #expect(again.range == 0..<100)
    #expect(table.settle(check, matches: true, trusted: [0, 1]) == .outdated)
    #expect(table.settle(again, matches: true, trusted: [0, 1]) == .verified)
  }

  @Test("A piece of which a part was present before, and is gone, is not judged")
  func forgottenPresent() throws {
    var table = try table()
    let present = ExtentSet([0..<50])
    let check = try #require(table.note(50..<100, from: 0, extents: present).checks.first)
    #expect(table.forget(0..<50) == 0)
    #expect(table.settle(check, matches: true, trusted: [0]) == .outdated)
    #expect(table.forget(0..<Int64.max) == 50)
  }

  @Test("A server whose bytes were dropped is not accused of those that replaced them")
  func droppedContributor() throws {
    var table = try table()
    _ = table.note(0..<50, from: 0, extents: ExtentSet())
    table.forget(0..<50)
    let check = try #require(table.note(0..<100, from: 1, extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: check, matches: false, trusted: [0, 1]) == 1)
    #expect(table.settle(check, matches: false, trusted: [0, 1]) == .mismatch)
    let again = try #require(table.note(0..<100, from: 1, extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: again, matches: true, trusted: [0, 1]) == nil)
  }

  @Test("The bytes of a proven culprit go from all pieces that are not verified")
  func disowned() throws {
    var table = try table()
    _ = table.note(0..<150, from: 0, extents: ExtentSet())
    _ = table.note(150..<160, from: 1, extents: ExtentSet())
    _ = table.note(300..<350, from: 1, extents: ExtentSet())
    #expect(table.disown(0) == [0..<100, 100..<200])
    let check = try #require(table.note(100..<200, from: 1, extents: ExtentSet()).checks.first)
    #expect(check.piece == 1)
    #expect(table.culprit(of: check, matches: false, trusted: [1, 2]) == 1)
    #expect(table.forget(300..<400) == 50)
  }

  @Test("A piece of which a part was dropped accuses no server")
  func partlyDropped() throws {
    var table = try table()
    _ = table.note(0..<50, from: 0, extents: ExtentSet())
    table.forget(25..<50)
    let check = try #require(table.note(25..<100, from: 1, extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: check, matches: false, trusted: [0, 1]) == nil)
    #expect(table.settle(check, matches: false, trusted: [0, 1]) == .mismatch)
    table.forget(0..<100)
    let again = try #require(table.note(0..<100, from: 1, extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: again, matches: true, trusted: [0, 1]) == nil)
  }

  @Test("Who alone has brought a wrong piece is the culprit")
  func oneLiar() throws {
    var table = try table()
    let check = try #require(table.note(0..<100, from: 1, extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: check, matches: false, trusted: [0, 1]) == 1)
    #expect(table.culprit(of: check, matches: true, trusted: [0, 1]) == nil)
    #expect(table.culprit(of: check, matches: false, trusted: [1]) == nil)
    // It was refused for another piece.
    #expect(table.culprit(of: check, matches: false, trusted: [0]) == nil)
    #expect(table.settle(check, matches: false, trusted: [0, 1]) == .mismatch)
    #expect(Array(table.suspects) == [0])
    #expect(table.excluded(fromPiece: 0) == [1])
    // The piece is excluded from the ordinary plan, and fetched as a whole.
    #expect(table.settled(with: ExtentSet()).contains(0..<100))
    #expect(table.restart(piece: 0, by: 7) == 0..<100)
  }

  @Test(
    "Where several have brought a wrong piece, nobody is blamed before one alone has brought it")
  func severalSuspects() throws {
    var table = try table()
    _ = table.note(0..<50, from: 0, extents: ExtentSet())
    let check = try #require(table.note(50..<100, from: 1, extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: check, matches: false, trusted: [0, 1]) == nil)
    #expect(table.settle(check, matches: false, trusted: [0, 1]) == .mismatch)
    #expect(table.excluded(fromPiece: 0).isEmpty)
    _ = table.restart(piece: 0, by: 7)
    let alone = try #require(table.note(0..<100, from: 0, extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: alone, matches: false, trusted: [0, 1]) == 0)
    #expect(table.settle(alone, matches: false, trusted: [0, 1]) == .mismatch)
    #expect(table.failureCount(ofPiece: 0) == 2)
    _ = table.restart(piece: 0, by: 7)
    let other = try #require(table.note(0..<100, from: 1, extents: ExtentSet()).checks.first)
    #expect(table.settle(other, matches: true, trusted: [1]) == .verified)
    #expect(Array(table.suspects).isEmpty)
    #expect(table.failureCount(ofPiece: 0) == 0)
  }

  /// A wrong piece from several servers, which `server` alone has delivered again.
  private func broughtAgain(
    after servers: Set<Int>, by server: Int, in table: PieceTable? = nil
  ) throws -> (table: PieceTable, check: PieceTable.Check) {
    var table = try table ?? self.table()
    var checks: [PieceTable.Check] = []
    for (place, index) in servers.sorted().enumerated() {
      let isLast = place == servers.count - 1
      let range = Int64(place) * 30..<(isLast ? 100 : Int64(place + 1) * 30)
      checks += table.note(range, from: index, extents: ExtentSet()).checks
    }
    let check = try #require(checks.first)
    #expect(table.settle(check, matches: false, trusted: [0, 1, 2]) == .mismatch)
    _ = table.restart(piece: 0, by: 7)
    let again = table.note(0..<100, from: server, extents: ExtentSet()).checks.first
    return (table, try #require(again))
  }

  @Test(
    "A server without a part in the right piece is asked alone for the next one, and not blamed")
  func suspicion() throws {
    let trusted = [0, 1, 2]
    // Server 1 sends the piece right when it is asked alone, as a server that lies would.
    var (table, check) = try broughtAgain(after: [1, 2], by: 1)
    for _ in 0..<3 {
      #expect(table.culprit(of: check, matches: true, trusted: trusted) == nil)
      #expect(table.settle(check, matches: true, trusted: trusted) == .verified)
      // The next piece that both have brought shows whether server 2 sends wrong bytes.
      _ = table.note(0..<30, from: 1, extents: ExtentSet())
      let shared = try #require(table.note(30..<100, from: 2, extents: ExtentSet()).checks.first)
      #expect(table.settle(shared, matches: false, trusted: trusted) == .mismatch)
      #expect(table.excluded(fromPiece: 0) == [1])
      _ = table.restart(piece: 0, by: 7)
      check = try #require(
        table.note(0..<100, from: 1, extents: ExtentSet()).checks.first)
    }
  }

  @Test(
    "Nobody is blamed for bytes of an earlier run, and they do not cost a server its second try")
  func earlierRun() throws {
    var table = try table()
    func brought(by server: Int) throws -> PieceTable.Outcome {
      let check = try #require(table.note(0..<100, from: server, extents: ExtentSet()).checks.first)
      #expect(table.culprit(of: check, matches: false, trusted: [0]) == nil)
      return table.settle(check, matches: false, trusted: [0])
    }
    #expect(try brought(by: PieceTable.unknownServer) == .mismatch)
    #expect(try brought(by: 0) == .mismatch)
    #expect(try brought(by: 0) == .lost)
  }

  @Test("A piece that an earlier run has begun wrong is no failure of the servers that complete it")
  func completed() throws {
    var table = try table()
    func brought(by first: Int, _ second: Int, trusted: [Int]) throws -> PieceTable.Outcome {
      _ = table.note(0..<50, from: first, extents: ExtentSet())
      let check = try #require(
        table.note(50..<100, from: second, extents: ExtentSet()).checks.first)
      #expect(table.culprit(of: check, matches: false, trusted: trusted) == nil)
      return table.settle(check, matches: false, trusted: trusted)
    }
    #expect(try brought(by: PieceTable.unknownServer, 1, trusted: [0, 1]) == .mismatch)
    #expect(table.failureCount(ofPiece: 0) == 0)
    #expect(table.excluded(fromPiece: 0).isEmpty)
    // The other one has been found out by another piece.
    #expect(try brought(by: 1, 0, trusted: [0]) == .mismatch)
    #expect(try brought(by: 1, 0, trusted: [0]) == .lost)
  }

  @Test("What others still bring of a piece that was wrong does not count")
  func late() throws {
    var table = try table()
    let check = try #require(
      table.note(0..<100, from: 1, by: .request(3), extents: ExtentSet()).checks.first)
    #expect(table.settle(check, matches: false, trusted: [0, 1]) == .mismatch)
    // Nor before it is asked for again.
    #expect(table.note(0..<100, from: 1, by: .request(3), extents: ExtentSet()).checks == [])
    _ = table.restart(piece: 0, by: 7)
    #expect(table.note(0..<150, from: 1, by: .request(3), extents: ExtentSet()).byteCount == 50)
    #expect(table.admitted(50..<150, by: .request(3)) == [100..<150])
    #expect(table.admitted(50..<150, by: .request(7)) == [50..<150])
    #expect(table.admitted(50..<150, by: .stream) == [50..<150])
    let again = try #require(
      table.note(0..<100, from: 0, by: .request(7), extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: again, matches: false, trusted: [0, 2]) == 0)
    #expect(table.settle(again, matches: true, trusted: [0, 2]) == .verified)
    #expect(table.admitted(0..<100, by: .request(3)) == [0..<100])
  }

  @Test("A piece that several bring wrong together, again and again, is lost in the end")
  func alwaysShared() throws {
    var table = try table()
    for count in 1...3 {
      _ = table.note(0..<50, from: 0, extents: ExtentSet())
      let check = try #require(table.note(50..<100, from: 1, extents: ExtentSet()).checks.first)
      let outcome = table.settle(check, matches: false, trusted: [0, 1])
      #expect(outcome == (count < 3 ? .mismatch : .lost))
    }
  }

  @Test("A single server is asked once more, then the piece is lost until somebody comes anew")
  func lost() throws {
    var table = try table()
    let first = try #require(table.note(0..<100, from: 0, extents: ExtentSet()).checks.first)
    #expect(table.settle(first, matches: false, trusted: [0]) == .mismatch)
    _ = table.restart(piece: 0, by: 7)
    let second = try #require(table.note(0..<100, from: 0, extents: ExtentSet()).checks.first)
    #expect(table.settle(second, matches: false, trusted: [0]) == .lost)
    #expect(table.isLost(99..<100))
    #expect(!table.isLost(100..<200))
    #expect(table.isWanting(extents: ExtentSet()))
    #expect(!table.isWanting(extents: ExtentSet([100..<950])))
    table.forgive()
    #expect(!table.isLost(0..<100))
  }

  @Test("Bytes of a lost piece that have arrived, and their check, outlive the next attempt")
  func forgivenWithBytes() throws {
    var table = try table()
    func lose() throws {
      for _ in 0..<2 {
        let check = try #require(table.note(0..<100, from: 0, extents: ExtentSet()).checks.first)
        _ = table.settle(check, matches: false, trusted: [0])
      }
      #expect(table.isLost(0..<100))
    }
    try lose()
    let check = try #require(table.note(0..<100, from: 0, extents: ExtentSet()).checks.first)
    table.forgive()
    #expect(table.settle(check, matches: true, trusted: [0]) == .verified)
    #expect(table.holes(in: 0..<100, extents: ExtentSet()) == [0..<100])

    // A half of another server: no one is to blame for the whole.
    try lose()
    _ = table.note(0..<50, from: 1, extents: ExtentSet())
    table.forgive()
    let half = try #require(table.note(50..<100, from: 0, extents: ExtentSet()).checks.first)
    #expect(table.culprit(of: half, matches: false, trusted: [0, 1]) == nil)
  }

  @Test("Hashes of another number of pieces are refused")
  func lengths() throws {
    let hashes = try table().hashes
    #expect(PieceTable(hashes: hashes, length: 900) == nil)
    #expect(PieceTable(hashes: hashes, length: 901) != nil)
    #expect(PieceTable(hashes: hashes, length: 1001) == nil)
  }
}

extension PieceTable {
  /// Bytes have come by a stream of the whole.
  fileprivate mutating func note(
    _ range: ByteRange, from mirror: Int, extents: ExtentSet
  ) -> (byteCount: Int64, checks: [Check]) {
    note(range, from: mirror, by: .stream, extents: extents)
  }
}
