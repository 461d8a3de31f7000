import SeededRandom
import Testing

/// Rows 1 to 6 and 9: answers to a range request with another range, or without one.
extension RealMounts.ResponseRows {
  @Test(
    "01 range ignored: streamed once from the start, right at every offset",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func rangesIgnored(seed: UInt64) throws {
    let row = try FaultRow(1, seed: seed, query: "ranges=no")
    let handle = try row.open()
    try row.expectWhole(handle)
    // One request for the length, cut as soon as the head has shown it, and one for the bytes.
    #expect(try row.requests().count == 2)
    try row.get(.right)
    try row.end()
  }

  @Test(
    "01 range ignored once: the range is asked for again",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func rangeIgnoredOnce(seed: UInt64) throws {
    let row = try FaultRow(1, seed: seed)
    let handle = try row.open()
    try row.expectRight(handle, row.randomRanges(2))
    let count = Int.random(in: 1...2, using: &row.random)
    try row.control(["fault": "ignore-range", "fault-count": String(count)])
    try row.expectWhole(handle)
    #expect(try row.requests().count { $0.fault == "ignore-range" } == count)
    try row.get(.right)
    try row.end()
  }

  @Test(
    "01 range ignored, far from the start: EIO or ETIMEDOUT by the deadline",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func rangeIgnoredBeyondReach(seed: UInt64) throws {
    let row = try FaultRow(
      1, seed: seed, lengths: (8 << 20)...(16 << 20), query: "ranges=no&rate=512k", readTimeout: 2)
    let handle = try row.open()
    try row.expectRight(handle, [0..<4096])
    let far = row.randomRanges(1, in: row.length / 2..<row.length - 4096)[0]
    try row.expectRead(handle, far, failsWith: ["EIO", "ETIMEDOUT"])
    try row.expectRight(handle, row.randomRanges(20, in: 0..<262_144))
    try row.end()
  }

  @Test(
    "02 wrong Content-Range: nothing is stored, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func wrongContentRange(seed: UInt64) throws {
    try Self.expectRejection(
      try FaultRow(2, seed: seed, readTimeout: 2),
      [
        OriginFault(["fault": "wrong-content-range"]),
        // Right bytes with the range of others, other bytes with the right range, and no range.
        try Self.contentRange("bytes {first + 1}-{last + 1}/{length + 1}"),
        try Self.contentRange("bytes {last}-{first}/{length}"),
        try Self.contentRange("bytes 18446744073709551616-x/*"),
        try Self.contentRange("items {first}-{last}/{length}"),
        try Self.contentRange("bytes */{length}"),
      ])
  }

  @Test(
    "02 a part with the status of the whole: nothing is stored, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func partCalledWhole(seed: UInt64) throws {
    let chunked = #","Content-Length":null,"Transfer-Encoding":"chunked""#
    try Self.expectRejection(
      try FaultRow(2, seed: seed, readTimeout: 2),
      try [(200, ""), (203, ""), (200, chunked), (203, chunked)].map { status, fields in
        // The resource is served in one chunk.
        let chunk = fields.isEmpty ? "" : #"{"text": "{hex(asked)}\r\n"}, "#
        let end = fields.isEmpty ? "" : #", {"text": "\r\n0\r\n\r\n"}"#
        return try OriginFault(
          match: #"{"range": true}"#,
          actions: #"""
            [{"head": {"status": \#(status), "set": {
                "Content-Range": "bytes {first}-{last}/{length}"\#(fields)}}},
              \#(chunk)"content"\#(end)]
            """#)
      },
      // A request for the whole file gets what its status says.
      lastingGet: .right)
  }

  private static func contentRange(_ field: String) throws -> OriginFault {
    try OriginFault(
      match: #"{"range": true}"#,
      actions: #"[{"head": {"set": {"Content-Range": "\#(field)"}}}, "body"]"#)
  }

  @Test(
    "03 206 starts earlier than asked: the part that was asked for is used",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func earlierRange(seed: UInt64) throws {
    let row = try FaultRow(3, seed: seed)
    let handle = try row.open()
    let fault = OriginFault(["fault": "earlier-range"])
    try row.inflict(fault)
    try row.expectWhole(handle)
    #expect(try row.requests().contains(where: fault.isMet))
    #expect(try row.status().retries == 0)
    try row.get(.right, options: ["-x", "4"])
    try row.end()
  }

  @Test(
    "03 206 ends later than asked: the part that was asked for is used",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func longerRange(seed: UInt64) throws {
    let row = try FaultRow(3, seed: seed)
    let handle = try row.open()
    let fault = try OriginFault(
      match: #"{"range": true}"#,
      actions: #"""
        [{"head": {"set": {
            "Content-Range": "bytes {first}-{min(last + 5000, length - 1)}/{length}",
            "Content-Length": "{min(last + 5000, length - 1) - first + 1}"}}},
          {"content": ["first", "min(last + 5000, length - 1)"]}]
        """#)
    try row.inflict(fault)
    try row.expectWhole(handle)
    #expect(try row.requests().contains(where: fault.isMet))
    #expect(try row.status().retries == 0)
    try row.get(.right, options: ["-x", "4"])
    try row.end()
  }

  @Test(
    "04 206 without Content-Range: nothing is stored, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func missingContentRange(seed: UInt64) throws {
    try Self.expectRejection(
      try FaultRow(4, seed: seed, readTimeout: 2),
      [OriginFault(["fault": "missing-content-range"])])
  }

  @Test(
    "05 multipart/byteranges not asked for: nothing is stored, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func multipart(seed: UInt64) throws {
    try Self.expectRejection(
      try FaultRow(5, seed: seed, readTimeout: 2), [OriginFault(["fault": "multipart"])])
  }

  @Test(
    "06 body one byte short: what is there is kept, its end asked for again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func shortBody(seed: UInt64) throws {
    let row = try FaultRow(6, seed: seed, readTimeout: 2)
    let handle = try row.open()
    try row.control(["fault": "short-body"])
    let download = try row.startGet(["--retries", "2"], name: "lasting.bin")
    // A read whose last byte never arrives. That byte is at the end of a page, as for the request.
    let page = Int64.random(in: 20...200, using: &row.random) * 4096
    try row.expectRead(handle, page..<page + 4096, failsWith: ["EIO", "ETIMEDOUT"])
    try download.expect(.failed)
    try row.clearFaults()
    try row.expectRecovery(handle, page..<page + 4096)
    try row.control(["fault": "short-body", "fault-count": "3"])
    try row.expectWhole(handle)
    #expect(try row.requests().contains { $0.fault == "short-body" })
    try row.get(.right)
    try row.end()
  }

  @Test(
    "06 body one byte long: nothing is stored, asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func longBody(seed: UInt64) throws {
    try Self.expectRejection(
      try FaultRow(6, seed: seed, readTimeout: 2),
      [
        try OriginFault(
          match: #"{"range": true}"#,
          actions: #"[{"head": {"set": {"Content-Length": "{size + 1}"}}}, "body", {"hex": "00"}]"#)
      ])
  }

  @Test(
    "09 206 with zero body: asked again, then EIO",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func emptyPart(seed: UInt64) throws {
    try Self.expectRejection(
      try FaultRow(9, seed: seed, readTimeout: 2),
      [
        OriginFault(["fault": "empty-206"]),
        try OriginFault(match: #"{"range": true}"#, actions: #"["head", "close"]"#),
      ])
  }
}
