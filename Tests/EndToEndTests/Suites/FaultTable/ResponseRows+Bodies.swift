import Glibc
import SeededRandom
import Testing

/// Rows 7, 8, 10, 11, 36, 38 to 40 and 77: bodies and connections that end badly, late or never.
extension RealMounts.ResponseRows {
  @Test(
    "07 truncated body: what is whole is kept, the rest is resumed",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func truncatedBody(seed: UInt64) throws {
    try Self.expectResumption(7, seed: seed, fault: "truncate")
  }

  @Test(
    "40 reset in the middle of a body: what is whole is kept, the rest is resumed",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func resetBody(seed: UInt64) throws {
    try Self.expectResumption(40, seed: seed, fault: "reset")
  }

  /// Reads and downloads a file whose bodies are cut several times, and counts the bytes sent.
  private static func expectResumption(_ number: Int, seed: UInt64, fault: String) throws {
    // One connection, in order: only the fault makes a byte arrive twice.
    let row = try FaultRow(number, seed: seed, options: ["--connections", "1"])
    let handle = try row.open()
    let count = Int.random(in: 2...4, using: &row.random)
    let place = Int64.random(in: 50_000...150_000, using: &row.random)
    try row.control([
      "fault": fault, "fault-count": String(count), "fault-at": String(place),
    ])
    let pieces = stride(from: 0, to: row.length, by: 100_000).map {
      $0..<min($0 + 100_000, row.length)
    }
    try row.expectRight(handle, pieces)
    try row.get(.right, options: ["-x", "1"])
    // Each cut may cost only the bytes in the kernels' buffers.
    let allowance = row.length + Int64(count + 1) * 65_536
    for name in [row.name, "get.bin"] {
      let requests = try row.origin.requests().filter { $0.path.hasSuffix("/" + name) }
      #expect(requests.count { $0.fault == fault } == count, "\(name)")
      #expect(requests.bodyByteCount <= allowance, "\(name) of \(row.length) bytes")
    }
    try row.end()
  }

  @Test(
    "40 resets at random places, heads included: resumed",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func resetAnywhere(seed: UInt64) throws {
    let row = try FaultRow(40, seed: seed, readTimeout: 20)
    let handle = try row.open()
    let fault = try OriginFault(
      match: #"{"probability": 0.3}"#,
      actions: #"""
        [{"choose": [[{"head": {"cut": "random(0, 200)"}}, "reset"],
          ["head", {"body": "random(0, size - 1)"}, "reset"]]}]
        """#)
    try row.origin.post(["seed": Int(seed % 1_000_000)])
    try row.inflict(fault)
    try row.expectWhole(handle)
    try row.get(.right, options: ["-x", "4"])
    try row.end()
  }

  @Test(
    "08 extra bytes after the body: cut, and the connection is closed",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func extraBytes(seed: UInt64) throws {
    let row = try FaultRow(8, seed: seed)
    let handle = try row.open()
    let fault = try #require(
      [
        OriginFault(["fault": "extra-bytes"]),
        // Bytes that look like the answer to the next request, and would be the wrong one.
        try OriginFault(
          match: #"{"range": true}"#,
          actions: #"""
            ["head", "body", {"text": "HTTP/1.1 206 Partial Content\r\nETag: {etag}\r\n"},
              {"text": "Content-Range: bytes {first}-{last}/{length}\r\nContent-Length: {asked}\r\n"},
              {"text": "\r\n"}, {"content": ["first + 1", "last + 1"]}]
            """#),
      ].randomElement(using: &row.random))
    try row.inflict(fault)
    for place in row.randomRanges(12, byteCounts: 1...100) {
      try row.read(handle, [place])
      // Bytes that arrive after the next request cannot be noticed before it.
      pause(for: .milliseconds(25))
    }
    try row.clearFaults()
    try Self.expectClosed(after: fault, row)
    try row.inflict(OriginFault(["fault": "extra-bytes"]))
    try row.expectWhole(handle)
    try row.get(.right)
    try row.end()
  }

  @Test(
    "10 Content-Length plus chunked: the connection is dropped, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func lengthAndChunked(seed: UInt64) throws {
    let row = try FaultRow(10, seed: seed, readTimeout: 2)
    let handle = try row.open()
    let fault = OriginFault(["fault": "length-and-chunked"])
    try row.inflict(fault, times: 3)
    try row.expectRight(handle, row.randomRanges(8))
    try Self.expectClosed(after: fault, row)
    try row.close(handle)
    try row.end()
    // Use a separate mount, in which no requested byte has been read already.
    try Self.expectRejection(try FaultRow(10, seed: seed, readTimeout: 2), [fault])
  }

  @Test(
    "10 contradictory lengths or broken chunks: nothing is stored, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func brokenFraming(seed: UInt64) throws {
    let chunked = #"{"head": {"set": {"Content-Length": null, "Transfer-Encoding": "chunked"}}}"#
    try Self.expectRejection(
      try FaultRow(10, seed: seed, readTimeout: 2),
      [
        #"[{"head": {"add": ["Content-Length: {size + 1}"]}}, "body", "close"]"#,
        #"[{"head": {"set": {"Content-Length": "-1"}}}, "body", "close"]"#,
        #"[{"head": {"set": {"Content-Length": "{size}x"}}}, "body", "close"]"#,
        #"[\#(chunked), {"text": "zz\r\n"}, "content", {"text": "\r\n0\r\n\r\n"}, "close"]"#,
        #"[\#(chunked), {"text": "fffffffffffffffff\r\n"}, "content", "close"]"#,
      ].map { try OriginFault(match: #"{"range": true}"#, actions: $0) })
  }

  /// Expects no request on a connection after a response with the fault.
  private static func expectClosed(after fault: OriginFault, _ row: FaultRow) throws {
    let requests = try row.origin.requests()
    let faulty = requests.filter(fault.isMet)
    #expect(!faulty.isEmpty)
    for response in faulty {
      #expect(
        !requests.contains { $0.connection == response.connection && $0.start > response.start },
        "connection \(response.connection) was used again")
    }
  }

  @Test(
    "11 chunked, size unknown: the size is a 206's",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func chunkedWithRanges(seed: UInt64) throws {
    let row = try FaultRow(11, seed: seed, query: "chunked=1&ranges=yes")
    let handle = try row.open()
    #expect(try row.length(of: handle) == row.length)
    try row.expectRight(handle, row.randomRanges(10, in: row.length / 2..<row.length))
    try row.expectWhole(handle)
    try row.get(.right)
    try row.end()
  }

  @Test(
    "11 body of unknown size: fetched to its end; never 0",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func unknownSize(seed: UInt64) throws {
    let framing = seed.isMultiple(of: 2) ? "chunked" : "close-delimited"
    let row = try FaultRow(11, seed: seed, query: "\(framing)=1&rate=4m")
    let handle = try row.open()
    #expect(try row.length(of: handle) != 0)
    try row.expectRight(handle, row.piecesOfWhole().sorted { $0.lowerBound < $1.lowerBound })
    // There are no bytes after the end.
    let end = try row.read(handle, [row.length..<row.length + 4096])[0]
    #expect(end.error == nil && end.deliveredByteCount == 0)
    try row.get(.right)
    try row.end()
  }

  @Test(
    "36 closed kept-alive connection: one silent retry",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func silentClose(seed: UInt64) throws {
    let row = try FaultRow(36, seed: seed)
    try row.control(["fault": "silent-close"])
    let handle = try row.open()
    try row.expectRight(handle, row.randomRanges(20))
    try row.expectWhole(handle)
    #expect(try row.requests().contains { $0.fault == "silent-close" })
    #expect(try row.status().retries == 0)
    #expect(try row.status().lastError == nil)
    try row.get(.right)
    try row.end()
  }

  @Test(
    "36 kept-alive connection that is reset when it is used again: one silent retry",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func resetOnReuse(seed: UInt64) throws {
    let row = try FaultRow(36, seed: seed)
    let handle = try row.open()
    try row.expectRight(handle, row.earlyPlaces(2))
    let fault = try OriginFault(match: #"{"reused": true}"#, actions: #"["reset"]"#)
    try row.inflict(fault)
    let places = row.randomRanges(4, in: row.length / 2..<row.length, byteCounts: 1...4096)
    try row.expectRight(handle, places)
    #expect(try row.requests().contains(where: fault.isMet))
    #expect(try row.status().retries == 0)
    try row.clearFaults()
    try row.expectWhole(handle)
    try row.end()
  }

  @Test(
    "38 stalled body: given up, and asked for again before the deadline",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func stalledBody(seed: UInt64) throws {
    let row = try FaultRow(38, seed: seed, readTimeout: 6)
    let handle = try row.open()
    let place = Int64.random(in: 0...20_000, using: &row.random)
    let fault = try #require(
      [
        OriginFault(["fault": "stall", "fault-at": String(place)]),
        // One byte per second is no progress either.
        try OriginFault(actions: #"["head", {"body": \#(place)}, {"rate": 1}, "body"]"#),
      ].randomElement(using: &row.random))
    try row.inflict(fault, times: 1)
    let download = try row.startGet()
    let places = row.randomRanges(
      4, in: row.length / 2..<row.length, byteCounts: 30_000...60_000)
    try row.expectRight(handle, places, threads: 4)
    #expect(try row.requests().contains(where: fault.isMet), "\(fault)")
    try download.expect(.right, within: .seconds(20))
    try row.expectWhole(handle)
    try row.end()
  }

  @Test(
    "38 server stopped for a moment: reading goes on",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func stoppedServer(seed: UInt64) throws {
    let row = try FaultRow(38, seed: seed, query: "rate=8m", readTimeout: 8)
    let handle = try row.open()
    let download = try row.startGet()
    row.origin.signal(SIGSTOP)
    let stopped = Duration.milliseconds(Int64.random(in: 300...1500, using: &row.random))
    let reader = try row.sandbox.start(["cat", row.mount.path(row.name)])
    pause(for: stopped)
    row.origin.signal(SIGCONT)
    try row.expectWhole(handle)
    #expect(reader.wait(within: .seconds(20)) == .exited(0), "\(reader.standardError)")
    try download.expect(.right)
    try row.end()
  }

  @Test(
    "39 head that does not come: given up at a deadline of its own, asked for again",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func stalledHead(seed: UInt64) throws {
    let row = try FaultRow(39, seed: seed, readTimeout: 6)
    let fault = try #require(
      [
        OriginFault(["fault": "stall-head"]),
        try OriginFault(actions: #"[{"rate": 1}, "head", {"rate": 0}, "body"]"#),
      ].randomElement(using: &row.random))
    try row.inflict(fault, times: 1)
    let download = try row.startGet()
    // The first request for the file is the unanswered one.
    let handle = try row.open()
    try row.clearFaults()
    try row.inflict(fault, times: 1)
    try row.expectRight(handle, [row.latePlace()])
    #expect(try row.requests().count(where: fault.isMet) == 2, "\(fault)")
    try download.expect(.right, within: .seconds(20))
    try row.expectWhole(handle)
    try row.end()
  }

  @Test(
    "39 heads that never come: ETIMEDOUT by the deadline",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func noHeads(seed: UInt64) throws {
    let row = try FaultRow(39, seed: seed, readTimeout: 2)
    let handle = try row.open()
    try row.expectRight(handle, row.earlyPlaces(2))
    try row.control(["fault": "stall-head"])
    let download = try row.startGet(["--retries", "0"])
    try row.expectRead(
      handle, row.latePlace(), failsWith: ["ETIMEDOUT"])
    try download.expect(.failed)
    try row.clearFaults()
    try row.expectRecovery(handle, row.parts(2)[1])
    try row.end()
  }

  @Test(
    "77 mmap of a page that cannot be had: SIGBUS in the reader alone",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func mappedFailure(seed: UInt64) throws {
    let row = try FaultRow(77, seed: seed, readTimeout: 2)
    let handle = try row.open()
    let present = row.randomRanges(8, in: 0..<16_384)
    let absent = row.latePlace()
    try row.expectRight(handle, present)
    let fault = [["status": "500"], ["fault": "stall-head"], ["fault": "reset", "fault-at": "0"]]
      .randomElement(using: &row.random)
    try row.control(try #require(fault))
    try row.expectBusError(absent)
    // The other readers continue, also through a mapping.
    for reading in try row.read(handle, present, call: .mmap) { #expect(reading.isWhole) }
    try row.clearFaults()
    try row.expectRecovery(handle, absent)
    try row.end()
  }
}
