import SeededRandom
import Testing

/// Rows 12 to 18 and 26: the facts that distinguish versions, and the reactions to a difference.
extension RealMounts.ResponseRows {
  @Test(
    "12 206 with another ETag: ESTALE for the old handle, the new version at the next open",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func otherEntityTag(seed: UInt64) throws {
    let row = try FaultRow(12, seed: seed)
    try Self.expectReplacement(row, by: ["version": "2"])
    try row.end()
  }

  @Test(
    "12 one 206 with another ETag: nothing of it is stored; right bytes or ESTALE",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func otherEntityTagOnce(seed: UInt64) throws {
    let row = try FaultRow(12, seed: seed)
    let handle = try row.open()
    let present = row.earlyPlaces(5)
    try row.expectRight(handle, present)
    let fault = try OriginFault(
      match: #"{"range": true}"#,
      actions: #"""
        [{"head": {"set": {"ETag": "\"other\""}}}, {"content": ["first", "last"], "version": 2}]
        """#)
    try row.inflict(fault, times: 1)
    let reading = try row.read(handle, [row.latePlace()])[0]
    #expect(reading.isWhole || reading.error == "ESTALE", "\(reading)")
    #expect(try row.requests().count(where: fault.isMet) == 1)
    try row.expectRight(handle, present)
    // The server confirms the first version again.
    try row.expectWhole(try row.open())
    try row.end()
  }

  /// Reads half of the file, changes the remote to a version of `length` bytes, and reads both
  /// halves.
  private static func expectReplacement(
    _ row: FaultRow, by change: [String: String], length: Int64? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let old = try row.open()
    let present = row.earlyPlaces(10)
    let absent = (0..<5).map { _ in row.latePlace() }
    // One small read at a time: the read-ahead does not reach the second half.
    try row.expectRight(old, present.shuffled(using: &row.random), sourceLocation: sourceLocation)
    // The first version still arrives in a partial file until the change is noticed.
    let half = try row.startGet(["--retries", "0"], query: "rate=256k")
    let hasPart = Deadline(after: .seconds(10)).wait { (half.partByteCount ?? 0) > 0 }
    #expect(hasPart, sourceLocation: sourceLocation)
    half.interrupt()
    try row.control(change)
    for range in absent {
      try row.expectRead(old, range, failsWith: ["ESTALE"], sourceLocation: sourceLocation)
    }
    try row.expectRight(old, present, sourceLocation: sourceLocation)
    #expect(try row.length(of: old) == row.length, sourceLocation: sourceLocation)

    let new = try row.open()
    #expect(try row.length(of: new) == length ?? row.length, sourceLocation: sourceLocation)
    let pieces = stride(from: 0, to: length ?? row.length, by: 100_000).map {
      $0..<min($0 + 100_000, length ?? row.length)
    }
    try row.expectRight(
      new, pieces.shuffled(using: &row.random), version: 2, length: length,
      sourceLocation: sourceLocation)
    // The old handle keeps its version.
    try row.expectRight(old, present, sourceLocation: sourceLocation)
    try row.expectRead(old, absent[0], failsWith: ["ESTALE"], sourceLocation: sourceLocation)
    try row.get(
      .right, query: "rate=256k", version: 2, length: length, sourceLocation: sourceLocation)
  }

  @Test(
    "13 same ETag answered 200: no If-Range is sent, the response itself is checked",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func sameEntityTagAnswered200(seed: UInt64) throws {
    let row = try FaultRow(13, seed: seed)
    let handle = try row.open()
    try row.expectRight(handle, row.randomRanges(4))
    let download = try row.startGet(query: "rate=512k")
    #expect(Deadline(after: .seconds(10)).wait { (download.partByteCount ?? 0) > 0 })
    download.interrupt()
    try row.remount()
    // From now on, every range is answered with the whole file, with its entity tag.
    try row.control(["ranges": "no"])
    let again = try row.open()
    try row.expectWhole(again)
    try row.get(.right, query: "rate=512k")
    #expect(try row.origin.requests().allSatisfy { $0.fields["if-range"] == nil })
    try row.end()
  }

  @Test(
    "14 weak ETag: never If-Range; no resume across mounts without a check",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func weakEntityTag(seed: UInt64) throws {
    let row = try FaultRow(14, seed: seed, query: "validators=weak")
    let places = row.randomRanges(10)
    try row.expectRight(try row.open(), places)

    // Unchanged: the cache serves the file after one request.
    try row.remount()
    try row.origin.clearLog()
    let handle = try row.open()
    #expect(try !row.requests().isEmpty, "the cache is trusted without a question")
    try row.expectRight(handle, places)

    // Changed: no cached byte is served.
    try row.remount()
    try row.control(["version": "2"])
    try row.expectWhole(try row.open(), version: 2)
    #expect(try row.origin.requests().allSatisfy { $0.fields["if-range"] == nil })
    try row.end()
  }

  @Test(
    "14 weak ETag that changes: ESTALE for the old handle, the new version at the next open",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func weakEntityTagChanges(seed: UInt64) throws {
    let row = try FaultRow(14, seed: seed, query: "validators=weak")
    try Self.expectReplacement(row, by: ["version": "2", "validators": "weak"])
    try row.end()
  }

  @Test(
    "15 Last-Modified only: tells the versions apart",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func lastModifiedOnly(seed: UInt64) throws {
    let row = try FaultRow(15, seed: seed, query: "validators=date")
    try Self.expectReplacement(row, by: ["version": "2", "validators": "date"])
    #expect(try row.status().validator?.hasPrefix("Last-Modified") == true)
    try row.end()
  }

  @Test(
    "15 Last-Modified of the second of the response: proves nothing; never two versions in one",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func lastModifiedTooFresh(seed: UInt64) throws {
    let row = try FaultRow(15, seed: seed, query: "validators=date", readTimeout: 2)
    let moment = "Tue, 07 Jan 2020 00:00:00 GMT"
    try row.inflict(
      try OriginFault(
        actions:
          #"[{"head": {"set": {"Last-Modified": "\#(moment)", "Date": "\#(moment)"}}}, "body"]"#
      ))
    let old = try row.open()
    let present = row.earlyPlaces(5)
    let readings = try row.read(old, present)
    // Other bytes of the same second: the heads show no difference.
    try row.control(["version": "2"])
    try row.read(old, row.randomRanges(8, in: row.length / 2..<row.length))
    if readings[0].isWhole { try row.expectRight(old, [present[0]]) }
    try row.remount()
    if case .opened(let new, _) = try row.tryOpen() {
      try row.read(new, present + row.randomRanges(8), version: 2)
    }
    try row.end(keepsCache: false)
  }

  @Test(
    "16 no validators: the size alone is compared; \"unverifiable\" in the status",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func noValidators(seed: UInt64) throws {
    let row = try FaultRow(16, seed: seed, query: "validators=none")
    try row.expectWhole(try row.open())
    #expect(try row.status().validator == "unverifiable")
    try row.get(.right)
    try row.end()
  }

  @Test(
    "16 no validators and another size: ESTALE for the old handle, the new version at an open",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func noValidatorsOtherSize(seed: UInt64) throws {
    let row = try FaultRow(16, seed: seed, query: "validators=none")
    let length = row.length + Int64.random(in: 1...100_000, using: &row.random)
    try Self.expectReplacement(
      row, by: ["version": "2", "validators": "none", "length": String(length)], length: length)
    try row.end(length: length)
  }

  @Test(
    "17 alternating ETags: the first is held; right bytes or ESTALE; no restart loop",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func alternatingEntityTags(seed: UInt64) throws {
    let row = try FaultRow(17, seed: seed, query: "etag-flip=1", readTimeout: 3)
    let handle = try row.open()
    // The bytes of the first request are kept, whatever later answers contain.
    let held = row.randomRanges(3, in: 0..<16_384)
    let places = row.randomRanges(12, in: row.length / 4..<row.length, byteCounts: 1...16_384)
    try row.expectRight(handle, held)
    for place in places {
      let reading = try row.read(handle, [place])[0]
      #expect(reading.isWhole || reading.error == "ESTALE", "\(reading)")
      try row.expectRight(handle, held)
    }
    let again = try row.open()
    try row.expectRight(again, held)
    for reading in try row.read(again, places) {
      #expect(reading.isWhole || reading.error == "ESTALE", "\(reading)")
    }
    try row.expectRight(again, held)
    let requestCount = try row.requests().count
    #expect(requestCount <= 80, "a storm of restarts")
    try row.get(.rightOrFailed)
    #expect(try row.origin.requests().count - requestCount <= 40)
    try row.end()
  }

  @Test(
    "18 size changed: ESTALE, and never zeros in place of bytes",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func sizeChanged(seed: UInt64) throws {
    let row = try FaultRow(18, seed: seed)
    // Shorter than the range that is read of the old version, so the answer is 416, or longer.
    let length =
      Bool.random(using: &row.random)
      ? row.length / 2 - Int64.random(in: 0..<100_000, using: &row.random)
      : row.length + Int64.random(in: 1...500_000, using: &row.random)
    try Self.expectReplacement(
      row, by: ["version": "2", "length": String(length)], length: length)
    try row.end(length: length)
  }

  @Test(
    "18 416 to a range that exists: ESTALE; a later open serves the version again",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func unsatisfiable(seed: UInt64) throws {
    try Self.expectContradiction(18, seed: seed, status: "416")
  }

  @Test(
    "26 412: ESTALE; a later open serves the version again",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func preconditionFailed(seed: UInt64) throws {
    try Self.expectContradiction(26, seed: seed, status: "412")
  }

  /// A status that claims that the version is gone, although it is not.
  private static func expectContradiction(_ number: Int, seed: UInt64, status: String) throws {
    let row = try FaultRow(number, seed: seed)
    let handle = try row.open()
    let present = row.earlyPlaces(5)
    let absent = row.latePlace()
    try row.expectRight(handle, present)
    try row.control(["status": status])
    try row.expectRead(handle, absent, failsWith: ["ESTALE"])
    try row.expectRight(handle, present)
    try row.get(.failed)
    try row.clearFaults()
    row.letFailuresPass()
    let isOpen = try Deadline(after: .seconds(5)).wait(every: .milliseconds(200)) {
      guard case .opened(let again, _) = try row.tryOpen() else { return false }
      try row.expectWhole(again)
      return true
    }
    #expect(isOpen)
    try row.get(.right, name: "later.bin")
    try row.end()
  }
}
