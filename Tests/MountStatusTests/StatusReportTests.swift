import Foundation
import MountStatus
import Testing

/// A report in which every field has its own value.
let sample: StatusReport = {
  var report = unlimited
  report.rateLimitBytesPerSecond = 10 << 20
  report.timeouts = TimeoutStatus(readSeconds: 60, firstAnswerSeconds: 5, outageSeconds: 90)
  report.files[0].rateLimitBytesPerSecond = 500 << 10
  report.files[0].requestsLastMinute = 17
  report.files[2].waitingOpen = WaitingOpen(waitedSeconds: 2.5, reason: "connecting\u{7}")
  report.list = ListStatus(isReadable: true, reloads: 2, error: "line 3: \u{7}")
  report.failedListings = [
    FailedListing(
      directory: "sub/", url: "http://h/sub/", reason: "HTTP 404\u{7}", showsEarlierNames: false)
  ]
  return report
}()

private let unlimited = StatusReport(
  mountpoint: "/mnt/remote", uptimeSeconds: 61.25,
  files: [
    FileStatus(
      name: "d/a \"b\".iso", url: "https://example.org/d/a.iso?…", state: .downloading,
      length: 100 << 20, cachedBytes: 50 << 20, fetchedBytes: 48 << 20,
      speedBytesPerSecond: 5_452_595, etaSeconds: 9.615, connections: 4, requests: 17, retries: 2,
      lastError: "HTTP 503\nretry", validator: "ETag \"abc\"",
      waitingReads: [
        WaitingRead(
          offset: 5_452_595, byteCount: 128 << 10, waitedSeconds: 3.1, reason: "server stalled")
      ]),
    FileStatus(
      name: "b", url: "http://h/b", state: .complete, length: 10, cachedBytes: 10, requests: 1,
      validator: "unverifiable", passthrough: true),
    FileStatus(name: "c\u{1B}[2J", url: "http://h/c", state: .unknown),
  ], cache: CacheStatus(error: "no \u{7} space", failures: 3),
  kernel: KernelStatus(inodes: 5, openHandles: 2))

@Suite struct StatusReportJSONTests {
  @Test func sumsOfAForeignReportSaturate() {
    var totals = StatusTotals()
    let file = FileStatus(
      name: "a", url: "http://h/a", state: .idle, length: .max, cachedBytes: .max,
      connections: .max, requests: .max, retries: .max)
    for _ in 1...2 { totals.add(file) }
    #expect(totals.length == .max && totals.cachedBytes == .max)
    #expect(totals.connections == .max && totals.requests == .max && totals.retries == .max)
  }

  @Test func theDocumentIsExactlyTheSchema() {
    let expected = """
      {"version":1,"mountpoint":"/mnt/remote","uptime_seconds":61.250,"verifies_servers":true,\
      "rate_limit_bytes_per_second":10485760,\
      "timeouts":{"read_seconds":60.000,"first_answer_seconds":5.000,"outage_seconds":90.000},\
      "totals":{"files":3,"complete_files":1,"length":104857610,"cached_bytes":52428810,\
      "fetched_bytes":50331648,"damaged_bytes":0,\
      "speed_bytes_per_second":5452595,"connections":4,"requests":18,\
      "retries":2,"waiting_reads":1},\
      "cache":{"error":"no \\u0007 space","failures":3},\
      "kernel":{"inodes":5,"open_handles":2},\
      "list":{"readable":true,"reloads":2,"reloading":false,"error":"line 3: \\u0007"},\
      "failed_listings":[{"directory":"sub/","url":"http://h/sub/","reason":"HTTP 404\\u0007",\
      "shows_earlier_names":false}],\
      "files":[{"name":"d/a \\"b\\".iso","url":"https://example.org/d/a.iso?…",\
      "state":"downloading","length":104857600,"cached_bytes":52428800,\
      "fetched_bytes":50331648,"damaged_bytes":0,\
      "speed_bytes_per_second":5452595,"eta_seconds":9.615,\
      "connections":4,"requests":17,"requests_last_minute":17,\
      "retries":2,"last_error":"HTTP 503\\u000aretry",\
      "validator":"ETag \\"abc\\"","waiting_reads":[{"offset":5452595,"byte_count":131072,\
      "waited_seconds":3.100,"reason":"server stalled"}],"waiting_open":null,"passthrough":false,"pinned":false,\
      "rate_limit_bytes_per_second":512000},\
      {"name":"b","url":"http://h/b","state":"complete","length":10,"cached_bytes":10,\
      "fetched_bytes":0,"damaged_bytes":0,\
      "speed_bytes_per_second":0,"eta_seconds":null,"connections":0,\
      "requests":1,"requests_last_minute":null,"retries":0,"last_error":null,"validator":"unverifiable",\
      "waiting_reads":[],"waiting_open":null,"passthrough":true,"pinned":false,\
      "rate_limit_bytes_per_second":null},\
      {"name":"c\\u001b[2J","url":"http://h/c","state":"unknown","length":null,\
      "cached_bytes":0,"fetched_bytes":0,"damaged_bytes":0,\
      "speed_bytes_per_second":0,"eta_seconds":null,\
      "connections":0,"requests":0,"requests_last_minute":null,\
      "retries":0,"last_error":null,"validator":null,\
      "waiting_reads":[],\
      "waiting_open":{"waited_seconds":2.500,"reason":"connecting\\u0007"},\
      "passthrough":false,"pinned":false,\
      "rate_limit_bytes_per_second":null}]}

      """
    #expect(String(decoding: sample.json(), as: UTF8.self) == expected)
  }

  @Test func anotherParserReadsTheSameKeysAndExplicitNulls() throws {
    let object = try #require(
      JSONSerialization.jsonObject(with: Data(sample.json())) as? [String: Any])
    #expect(
      Set(object.keys) == [
        "version", "mountpoint", "uptime_seconds", "verifies_servers",
        "rate_limit_bytes_per_second", "timeouts", "totals", "cache", "kernel",
        "list", "failed_listings", "files",
      ])
    let totals = try #require(object["totals"] as? [String: Any])
    #expect(
      Set(totals.keys) == [
        "files", "complete_files", "length", "cached_bytes", "fetched_bytes",
        "damaged_bytes",
        "speed_bytes_per_second", "connections", "requests", "retries", "waiting_reads",
      ])
    let files = try #require(object["files"] as? [[String: Any]])
    for file in files {
      #expect(
        Set(file.keys) == [
          "name", "url", "state", "length", "cached_bytes", "fetched_bytes",
          "damaged_bytes", "speed_bytes_per_second", "eta_seconds", "connections", "requests",
          "requests_last_minute", "retries",
          "last_error", "validator", "waiting_reads", "waiting_open", "passthrough", "pinned",
          "rate_limit_bytes_per_second",
        ])
    }
    for key in ["length", "eta_seconds", "last_error", "validator"] {
      #expect(files[2][key] is NSNull)
    }
    #expect(files[2]["name"] as? String == "c\u{1B}[2J")
  }

  @Test func decodingGivesBackTheReport() throws {
    #expect(try StatusReport(json: sample.json()) == sample)
  }

  @Test func unknownKeysAreIgnored() throws {
    let text = String(decoding: sample.json(), as: UTF8.self)
      .replacing("\"version\":1", with: "\"later\":[{}],\"version\":1")
    #expect(try StatusReport(json: Array(text.utf8)) == sample)
  }

  @Test("A report of an earlier version lacks keys that were added since")
  func reportOfAnEarlierVersion() throws {
    var report = sample
    report.files[2].waitingOpen = nil
    let text = String(decoding: report.json(), as: UTF8.self)
      .replacing("\"waiting_open\":null,", with: "")
      .replacing("\"failed_listings\":", with: "\"other\":")
      .replacing("\"list\":", with: "\"another\":")
    report.failedListings = nil
    report.list = nil
    #expect(try StatusReport(json: Array(text.utf8)) == report)
  }

  @Test func anotherVersionIsNamed() {
    #expect(throws: StatusReport.DecodingFailure.unsupportedVersion(2)) {
      try StatusReport(json: Array("{\"version\":2}".utf8))
    }
  }

  @Test(arguments: ["", "x", "{}", "{\"version\":1}", "[]", "{\"version\":1,\"mountpoint\":3}"])
  func garbageIsMalformed(text: String) {
    #expect(throws: StatusReport.DecodingFailure.malformed) {
      try StatusReport(json: Array(text.utf8))
    }
  }

  @Test(arguments: FileState.allCases)
  func everyStateHasItsWord(state: FileState) throws {
    let report = StatusReport(
      mountpoint: "/m", uptimeSeconds: 0, files: [FileStatus(name: "a", url: "u", state: state)])
    #expect(String(decoding: report.json(), as: UTF8.self).contains("\"state\":\"\(state)\""))
    #expect(try StatusReport(json: report.json()) == report)
  }

  @Test func everyCharacterSurvivesTheTrip() throws {
    let name =
      (0...0x2FF as ClosedRange<UInt32>).compactMap(Unicode.Scalar.init)
      .reduce(into: "") { $0.unicodeScalars.append($1) } + "\u{2028}\u{1F600}\u{FFFD}"
    let report = StatusReport(
      mountpoint: name, uptimeSeconds: 0, files: [FileStatus(name: name, url: "u", state: .idle)])
    #expect(try StatusReport(json: report.json()).files[0].name == name)
  }

  @Test(arguments: [
    (Double.nan, "null"), (.infinity, "null"), (-0.0, "0.000"), (1e300, "1000000000000000.000"),
    (0.0005, "0.001"), (-1.5, "-1.500"), (1.0625, "1.063"),
  ])
  func secondsAreFiniteDecimals(value: Double, text: String) {
    let report = StatusReport(
      mountpoint: "/m", uptimeSeconds: 0,
      files: [FileStatus(name: "a", url: "u", state: .idle, etaSeconds: value)])
    #expect(
      String(decoding: report.json(), as: UTF8.self).contains("\"eta_seconds\":\(text),"))
  }

  @Test func sumsOfAbsurdLengthsSaturate() {
    let file = FileStatus(name: "a", url: "u", state: .idle, length: .max, cachedBytes: .max)
    let totals = StatusSums(of: [file, file]).totals
    #expect(totals.length == .max)
    #expect(totals.cachedBytes == .max)
    // The text does not trap on impossible figures either.
    for length in [Int64.min, -1, 0, 1, .max] {
      let odd = FileStatus(
        name: "a", url: "u", state: .idle, length: length, cachedBytes: .max,
        speedBytesPerSecond: .min, etaSeconds: .infinity,
        waitingReads: [
          WaitingRead(offset: .min, byteCount: .max, waitedSeconds: .nan, reason: "\u{0}")
        ])
      let report = StatusReport(mountpoint: "/m", uptimeSeconds: .infinity, files: [odd])
      #expect(report.text().contains("100%"))
    }
  }
}
