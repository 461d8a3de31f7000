import MountStatus
import Testing
import TextFormat

@Suite struct StatusTextTests {
  @Test func controlsOfATerminalAndOfTheOrderOfTextAreEscapedOnce() {
    let escaped = escapingControls("a\u{1B}[1m\u{9B}\n\u{2028}\u{2029}\u{202E}\u{2066}\u{200F}é文")
    #expect(
      escaped == "a\\u{1B}[1m\\u{9B}\\u{A}\\u{2028}\\u{2029}\\u{202E}\\u{2066}\\u{200F}é文")
    #expect(escapingControls(escaped) == escaped)
  }

  @Test func serversThatAreNotVerifiedAreToldOf() {
    var report = sample
    #expect(!report.text().contains("NOT verified"))
    report.verifiesServers = false
    #expect(report.text().contains("\nhttps servers are NOT verified (--insecure)"))
    #expect(String(decoding: report.json(), as: UTF8.self).contains("\"verifies_servers\":false,"))
  }

  @Test func theTextShowsTotalsThenALineForEachFile() {
    #expect(
      sample.text() == """
        httpfs /mnt/remote  up 1m01s
        3 files, 1 complete, 50 MiB of 100 MiB cached (50%), 48 MiB fetched
        5.2 MiB/s, ETA 10s, 4 connections, 18 requests, 2 retries, 1 waiting read, 1 waiting open
        at most 10 MiB/s for all files together (rate limit)
        timeouts: read 1m00s, first answer 5s, outage 1m30s
        the cache fails, files are read without it: no \\u{7} space
        list not reloaded: line 3: \\u{7}
        no listing of 'sub/': HTTP 404\\u{7}

        NAME        STATE          %     CACHED / LENGTH            SPEED    ETA CONN RETRY
        d/a "b".iso downloading  50%     50 MiB / 100 MiB       5.2 MiB/s    10s    4     2  at most 500 KiB/s
            last error: HTTP 503\\u{A}retry
            read of 128 KiB at 5.2 MiB waits 3.1 s: server stalled
        b           complete    100%       10 B / 10 B                  -      -    0     0
        c\\u{1B}[2J  unknown        ?        0 B / ?                     -      -    0     0
            open waits 2.5 s: connecting\\u{7}

        """)
  }

  @Test("Figures are aligned by the columns of a terminal, however wide the characters of a name")
  func wideNames() {
    let names = ["plain.bin", "文件名.bin", "e\u{301}.bin", "🎉.bin"]
    let report = StatusReport(
      mountpoint: "/m", uptimeSeconds: 0,
      files: names.map { FileStatus(name: $0, url: "u", state: .idle, length: 10) })
    let rows = report.text().split(separator: "\n").filter { $0.contains(" idle ") }
    #expect(rows.count == names.count)
    let columns = rows.map { row in
      row.firstRange(of: "idle").map { displayWidth(String(row[..<$0.lowerBound])) }
    }
    #expect(Set(columns) == [11])
  }

  @Test("A part that is too small for a percent is not shown as nothing")
  func smallParts() {
    let report = StatusReport(
      mountpoint: "/m", uptimeSeconds: 0,
      files: [
        FileStatus(name: "a", url: "u", state: .idle, length: 1 << 20, cachedBytes: 4096),
        FileStatus(name: "b", url: "u", state: .idle, length: 1 << 20),
      ])
    let text = report.text()
    #expect(text.contains("4 KiB of 2 MiB cached (<1%)"))
    #expect(text.contains("a    idle         <1%      4 KiB / 1 MiB"))
    #expect(text.contains("b    idle          0%        0 B / 1 MiB"))
  }

  @Test("Without a flow, the totals name no speed and no remaining time")
  func noFlow() {
    let report = StatusReport(
      mountpoint: "/m", uptimeSeconds: 0, files: [FileStatus(name: "a", url: "u", state: .idle)])
    #expect(report.text().contains("\n0 connections, 0 requests, 0 retries, 0 waiting reads\n"))
  }

  @Test("A directory that shows the names of an earlier listing is told from one without names")
  func listingOfEarlierNames() {
    var report = StatusReport(mountpoint: "/m", uptimeSeconds: 0, files: [])
    report.failedListings = [
      FailedListing(
        directory: "/", url: "http://h/", reason: "connection refused", showsEarlierNames: true)
    ]
    #expect(
      report.text().contains("\nthe listing of '/' may be out of date: connection refused\n"))
    #expect(
      String(decoding: report.metrics(), as: UTF8.self).contains(
        "\nhttpfs_failed_listing{directory=\"/\",reason=\"connection refused\"} 1\n"))
  }

  @Test func aVeryLongNameIsShownWhole() {
    let name = String(repeating: "x", count: 200)
    let report = StatusReport(
      mountpoint: "/m", uptimeSeconds: 0, files: [FileStatus(name: name, url: "u", state: .idle)])
    #expect(report.text().contains("\n\(name) idle"))
  }

  @Test(
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (128 << 10, "128 KiB"), (1536, "1.5 KiB"),
      ((1 << 20) - 1, "1 MiB"), (5_452_595, "5.2 MiB"), (1 << 30, "1 GiB"), (.max, "8 EiB"),
      (-1, "-1 B"),
    ] as [(Int64, String)])
  func bytesAreShownInBinaryUnits(byteCount: Int64, text: String) {
    #expect(humanBytes(byteCount) == text)
  }

  @Test(
    "The short form of bytes has at most five columns",
    arguments: [
      (0, "0B"), (1023, "1023B"), (1024, "1K"), (1536, "1.5K"), (102_348, "99.9K"),
      (102_400, "100K"), (1_048_063, "1023K"), (1_048_064, "1M"), (.max, "8E"), (-1, "-1B"),
    ] as [(Int64, String)])
  func shortForm(byteCount: Int64, text: String) {
    #expect(shortBytes(byteCount) == text)
    #expect(text.count <= 5)
  }

  @Test(
    arguments: [
      (0, "0s"), (0.2, "1s"), (59, "59s"), (60, "1m00s"), (185, "3m05s"), (7620, "2h07m"),
      (356_400, "4d03h"), (-5, "0s"), (.infinity, "-"), (.nan, "-"),
    ] as [(Double, String)])
  func durationsAreShownInTwoUnits(seconds: Double, text: String) {
    #expect(humanDuration(seconds: seconds) == text)
  }

  @Test(
    arguments: [
      (nil, 0, nil), (0, 0, 100), (100, 0, 0), (100, 99, 99), (1000, 999, 99), (1000, 1000, 100),
      (100, 200, 100), (.max, .max - 1, 99),
    ] as [(Int64?, Int64, Int?)])
  func aHundredPercentMeansThatNothingIsMissing(length: Int64?, cached: Int64, percent: Int?) {
    let file = FileStatus(name: "a", url: "u", state: .idle, length: length, cachedBytes: cached)
    #expect(file.percent == percent)
  }

  @Test("The time left is that of all downloads together, not of the slowest")
  func timeLeft() {
    func file(_ cachedBytes: Int64, speed: Int64, eta: Double?) -> FileStatus {
      FileStatus(
        name: "f", url: "u", state: .downloading, length: 1000, cachedBytes: cachedBytes,
        speedBytesPerSecond: speed, etaSeconds: eta)
    }
    #expect(StatusSums(of: [file(0, speed: 0, eta: nil)]).etaSeconds == nil)
    let files = [
      file(100, speed: 90, eta: 10), file(0, speed: 10, eta: 100), file(0, speed: 0, eta: nil),
    ]
    #expect(StatusSums(of: files).etaSeconds == 19)
  }
}
