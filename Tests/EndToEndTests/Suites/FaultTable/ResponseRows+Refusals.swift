import SeededRandom
import Testing

/// Rows 19 to 25, 27, 28, 33 and 34: answers that do not contain the file.
extension RealMounts.ResponseRows {
  @Test(
    "19 404 or 410: a new open gives ENOENT, cached bytes stay",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func missing(seed: UInt64) throws {
    let row = try FaultRow(19, seed: seed, options: ["--revalidate", "0"])
    let handle = try row.open()
    let present = row.earlyPlaces(10)
    let absent = row.latePlace()
    try row.expectRight(handle, present)
    try row.control(["status": Bool.random(using: &row.random) ? "404" : "410"])
    try row.expectOpen(failsWith: "ENOENT")
    try row.expectRight(handle, present)
    try row.expectRead(handle, absent, failsWith: ["EIO", "ENOENT"])
    let download = try row.get(.failed)
    download.expectError(mentions: "HTTP 4")
    #expect(try row.origin.requests().count { $0.path.hasSuffix("/get.bin") } == 1)
    try row.clearFaults()
    try row.expectRecovery(handle, absent)
    try row.end()
  }

  @Test(
    "20 remote cannot be confirmed: cached bytes are served, and nothing is called deleted",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func unconfirmed(seed: UInt64) throws {
    let row = try FaultRow(20, seed: seed, readTimeout: 2, options: ["--revalidate", "0"])
    let present = row.earlyPlaces(10)
    let absent = row.latePlace()
    let first = try row.open()
    try row.expectRight(first, present)
    let fault = [
      ["status": "500"], ["status": "502"], ["status": "429"], ["fault": "stall-head"],
      ["fault": "reset", "fault-at": "0"], ["fault": "truncate", "fault-at": "0"],
    ].randomElement(using: &row.random)
    try row.control(try #require(fault))
    let handle = try row.open()
    try row.expectRight(handle, present)
    try row.expectRead(handle, absent, failsWith: ["EIO", "ETIMEDOUT"])
    #expect(try output(of: ["ls", row.mount.mountpoint]) == row.name + "\n")
    #expect(try row.status().lastError != nil)
    try row.clearFaults()
    try row.expectRecovery(handle, absent)
    try row.end()
  }

  @Test(
    "21 401, 403 or 407: EACCES after one try",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func denied(seed: UInt64) throws {
    let row = try FaultRow(21, seed: seed)
    let status = try #require(["401", "403", "407"].randomElement(using: &row.random))
    try row.control(["status": status])
    try row.expectOpen(failsWith: "EACCES")
    #expect(try row.requests().count == 1)
    #expect(try row.status().lastError?.contains(status) == true)
    let download = try row.get(.failed)
    download.expectError(mentions: status)
    #expect(try row.origin.requests().count { $0.path.hasSuffix("/get.bin") } == 1)

    try row.clearFaults()
    var handle: VerifyingReader.Handle?
    _ = try Deadline(after: .seconds(5)).wait(every: .milliseconds(200)) {
      if case .opened(let opened, _) = try row.tryOpen() { handle = opened }
      return handle != nil
    }
    let open = try #require(handle)
    let present = row.earlyPlaces(4)
    try row.expectRight(open, present)
    try row.control(["status": status])
    let before = try row.requests().count
    try row.expectRead(
      open, row.randomRanges(1, in: row.length / 2..<row.length, byteCounts: 1...4096)[0],
      failsWith: ["EACCES"])
    #expect(try row.requests().count - before == 1)
    try row.expectRight(open, present)
    try row.end()
  }

  @Test(
    "22 signed target expires: the original URL is asked once for all who read",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func expiredTarget(seed: UInt64) throws {
    let row = try FaultRow(22, seed: seed)
    func target(_ name: String) -> String {
      "/data/\(name)?length=\(row.length)&seed=\(row.contentSeed)"
    }
    let status = try #require(["401", "403", "404", "410"].randomElement(using: &row.random))
    try row.origin.control("*/\(row.name)", ["redirect": target("signed-1")])
    let handle = try row.open()
    try row.expectRight(handle, row.earlyPlaces(4))
    let before = try row.requests().count
    try row.origin.control("*/signed-1", ["status": status])
    try row.origin.control("*/\(row.name)", ["redirect": target("signed-2")])
    try row.expectRight(
      handle, row.randomRanges(16, in: row.length / 2..<row.length, byteCounts: 1...4096),
      threads: 8)
    #expect(try row.requests().count - before == 1)
    try row.expectWhole(handle)

    try row.origin.control("*/get.bin", ["redirect": target("signed-2")])
    try row.get(.right, options: ["-x", "4"])
    try row.end()
  }

  @Test(
    "23 Retry-After of a second: waited for, then read",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func retryAfter(seed: UInt64) throws {
    let row = try FaultRow(23, seed: seed)
    let handle = try row.open()
    let status = Bool.random(using: &row.random) ? "429" : "503"
    try row.control(["status": status, "retry-after": "1", "fault-count": "1"])
    let place = row.latePlace()
    let duration = try elapsed { try row.expectRight(handle, [place]) }
    #expect(duration >= .milliseconds(900))
    try row.get(.right)
    try row.end()
  }

  @Test(
    "23 Retry-After that is past, garbage or huge: clamped; the read ends by its deadline",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func oddRetryAfter(seed: UInt64) throws {
    let row = try FaultRow(23, seed: seed, readTimeout: 4)
    let handle = try row.open()
    let past = [
      "0", "-1", "Thu, 01 Jan 1970 00:00:00 GMT", "soon", "1e3", "1.5", "",
      "Wed, 31 Feb 2024 25:61:61 GMT",
    ]
    let harmless = try #require(past.randomElement(using: &row.random))
    try row.control(["status": "503", "retry-after": harmless, "fault-count": "2"])
    try row.expectRight(handle, row.randomRanges(2, in: row.length / 2..<row.length))
    let huge = try #require(
      ["86400", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"].randomElement(
        using: &row.random))
    try row.clearFaults()
    try row.control(["status": "429", "retry-after": huge])
    try row.expectRead(
      handle, row.randomRanges(1, in: row.length / 4..<row.length / 3)[0],
      failsWith: ["EIO", "ETIMEDOUT"])
    try row.end()
  }

  @Test(
    "24 HTML page as 200: nothing of it is stored, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func htmlPage(seed: UInt64) throws {
    let row = try FaultRow(24, seed: seed, readTimeout: 2)
    // A download that receives only the page accepts it, with a warning (docs/TRANSFERS.md).
    try Self.expectRejection(row, [OriginFault(["fault": "html-200"])], lastingGet: .page)
  }

  @Test(
    "25 HEAD is never asked for: GET bytes=0- tells all",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func neverHead(seed: UInt64) throws {
    let row = try FaultRow(25, seed: seed)
    let trap = try #require(
      [
        #"[{"text": "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n"}]"#,
        #"[{"head": {"set": {"Content-Length": "{length * 2}", "ETag": "\"other\""}}}]"#,
        #"["stall"]"#,
      ].randomElement(using: &row.random))
    try row.inflict(try OriginFault(match: #"{"method": "HEAD"}"#, actions: trap))
    try output(of: ["ls", "-l", row.mount.mountpoint])
    try row.expectRight(try row.open(), row.randomRanges(5))
    try row.get(.right)
    let requests = try row.origin.requests()
    #expect(requests.allSatisfy { $0.method == "GET" })
    #expect(requests.first?.range?.hasPrefix("bytes=0-") == true)
    try row.end()
  }

  @Test(
    "27 odd 204, 304 and the like: nothing is stored, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func oddStatus(seed: UInt64) throws {
    try Self.expectRejection(
      try FaultRow(27, seed: seed, readTimeout: 2),
      ["201", "202", "204", "205", "300", "304"].map { OriginFault(["status": $0]) }
        + [
          #"[{"text": "HTTP/1.1 204 None\r\nContent-Length: 5\r\n\r\nhello"}, "close"]"#,
          #"[{"text": "HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"}, "close"]"#,
          #"[{"text": "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"}]"#,
        ].map { try OriginFault(actions: $0) },
      passingGet: .rightOrFailed)
  }

  @Test(
    "27 interim responses before the head: skipped",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func interimResponses(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let status = [100, 102, 103, 110, 199].randomElement(using: &random) ?? 100
    let row = try FaultRow(27, seed: seed, query: "interim=\(status)")
    try row.expectWhole(try row.open())
    #expect(try row.status().retries == 0)
    try row.get(.right)
    try row.end()
  }

  @Test(
    "27 a hundred interim responses: skipped",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func manyInterimResponses(seed: UInt64) throws {
    let row = try FaultRow(27, seed: seed)
    try row.inflict(
      try OriginFault(
        actions: #"""
          [{"repeat": 100, "actions": [{"text": "HTTP/1.1 102 Wait\r\n\r\n"}]}, "head", "body"]
          """#))
    try row.expectWhole(try row.open())
    try row.get(.right)
    try row.end()
  }

  @Test(
    "28 redirect loop: EIO after ten redirects",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func redirectLoop(seed: UInt64) throws {
    let row = try FaultRow(28, seed: seed)
    try row.control(["fault": "redirect-loop"])
    try row.expectOpen(failsWith: "EIO")
    #expect(try row.requests().count == 11)
    #expect(try row.status().lastError?.contains("redirect") == true)
    let download = try row.get(.failed)
    download.expectError(mentions: "redirect")
    #expect(try row.origin.requests().count { $0.path.hasSuffix("/get.bin") } == 11)
    try row.end()
  }

  @Test(
    "28 chain of up to ten redirects: followed",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func redirectChain(seed: UInt64) throws {
    let row = try FaultRow(28, seed: seed)
    let count = Int.random(in: 1...10, using: &row.random)
    for name in [row.name, "get.bin"] {
      for hop in 0..<count {
        let here = hop == 0 ? name : "\(name)-\(hop)"
        try row.origin.control(
          "*/\(here)",
          [
            "redirect":
              "/data/\(name)-\(hop + 1)?length=\(row.length)&seed=\(row.contentSeed)",
            "redirect-status": String(
              [301, 302, 303, 307, 308].randomElement(using: &row.random) ?? 302),
          ])
      }
    }
    try row.expectWhole(try row.open())
    try row.get(.right)
    try row.end()
  }

  /// A head that repeats the same text `count` times.
  private static func bomb(
    _ start: String, _ count: String, _ text: String, end: String = ""
  ) throws -> OriginFault {
    try OriginFault(
      actions: #"""
        [{"text": "HTTP/1.1 200 OK\r\n\#(start)"}, {"repeat": "\#(count)", "actions": [
          {"text": "\#(text)"}]}, {"text": "\#(end)\r\n"}, "close"]
        """#)
  }

  @Test(
    "34 hostile bytes in a head: right bytes or an error, and the daemon lives",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func hostileHead(seed: UInt64) throws {
    let row = try FaultRow(34, seed: seed, readTimeout: 3)
    let handle = try row.open()
    let fault = try #require(
      [
        #"[{"head": {"add": ["X: a\u0000b", "Y: a\rb", ": nameless", "no colon"]}}, "body"]"#,
        #"[{"head": {"add": ["\u0000\u0001\u007f\u00ff: \u00ff"]}}, "body"]"#,
        #"[{"hex": "00ff16030100"}, "close"]"#,
        #"[{"text": "HTTP/1.1 206\r\n\r\n"}, "close"]"#,
        #"[{"text": "HTTP/9.9 206 OK\r\nContent-Range: \r\n\r\n"}, "close"]"#,
        #"[{"text": "\r\n\r\n\r\n"}, "close"]"#,
      ].map { try OriginFault(actions: $0) }.randomElement(using: &row.random))
    try row.inflict(fault)
    let download = try row.startGet(["--retries", "1"])
    try row.read(handle, [row.latePlace()])
    #expect(try row.requests().contains(where: fault.isMet))
    try download.expect(.rightOrFailed)
    try row.clearFaults()
    row.letFailuresPass()
    let isOpen = try Deadline(after: .seconds(5)).wait(every: .milliseconds(200)) {
      guard case .opened(let again, _) = try row.tryOpen() else { return false }
      try row.expectWhole(again)
      return true
    }
    #expect(isOpen)
    try row.end()
  }

  @Test(
    "33 gzip despite identity: codings are never mixed",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func unaskedCoding(seed: UInt64) throws {
    let row = try FaultRow(33, seed: seed, readTimeout: 3)
    let handle = try row.open()
    let present = row.earlyPlaces(5)
    let absent = row.latePlace()
    try row.expectRight(handle, present)
    let fault = try #require(
      [
        OriginFault(["fault": "gzip"]),
        // A valid stream, of five bytes.
        try OriginFault(
          actions: #"""
            [{"text": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 25\r\n\r\n"},
              {"base64": "H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA=="}]
            """#),
      ].randomElement(using: &row.random))
    try row.inflict(fault)
    // The coding is part of the version: other bytes, or bytes that cannot be trusted.
    try row.expectRead(handle, absent, failsWith: ["ESTALE", "EIO", "ETIMEDOUT"])
    try row.expectRight(handle, present)
    #expect(try row.requests().contains(where: fault.isMet))
    try row.clearFaults()
    row.letFailuresPass()
    let isOpen = try Deadline(after: .seconds(5)).wait(every: .milliseconds(200)) {
      guard case .opened(let again, _) = try row.tryOpen() else { return false }
      try row.expectWhole(again)
      return true
    }
    #expect(isOpen)
    try row.inflict(fault, times: 1)
    try row.get(.right)
    try row.end()
  }

  @Test(
    "84 65,600 fields of three bytes, below every limit of bytes: EIO, and the daemon lives",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func manyFields(seed: UInt64) throws {
    let row = try FaultRow(84, seed: seed)
    let handle = try row.open()
    let present = row.earlyPlaces(5)
    let absent = row.latePlace()
    try row.expectRight(handle, present)
    let fault = try Self.bomb("", "65600", "a:\\n")
    try row.inflict(fault)
    try row.expectRead(handle, absent, failsWith: ["EIO"])
    try row.expectRight(handle, present)
    let download = try row.get(.failed)
    download.expectError(mentions: "head")
    #expect(try row.requests().contains(where: fault.isMet))
    #expect(try row.mount.peakResidentByteCount < 96 << 20)
    try row.clearFaults()
    try row.expectRecovery(handle, absent)
    try row.end()
  }

  @Test(
    "34 header bomb: cut at 256 KiB, EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func headerBomb(seed: UInt64) throws {
    let row = try FaultRow(34, seed: seed)
    let handle = try row.open()
    let present = row.earlyPlaces(5)
    let absent = row.latePlace()
    try row.expectRight(handle, present)
    let fault = try #require(
      [
        OriginFault(["fault": "header-bomb"]),
        try Self.bomb("X: ", "300k", "xxxxxxxxxx", end: "\\r\\n"),
        try Self.bomb("X: a\\r\\n", "100000", " a fold\\r\\n"),
        try Self.bomb("", "200000", "X-{index}: y\\r\\n"),
      ].randomElement(using: &row.random))
    try row.inflict(fault)
    try row.expectRead(handle, absent, failsWith: ["EIO"])
    try row.expectRight(handle, present)
    let download = try row.get(.failed)
    download.expectError(mentions: "head")
    let bombs = try row.origin.requests().filter(fault.isMet)
    #expect(!bombs.isEmpty && bombs.count <= 4)
    #expect(try row.mount.peakResidentByteCount < 96 << 20)
    try row.clearFaults()
    try row.expectRecovery(handle, absent)
    try row.end()
  }
}
