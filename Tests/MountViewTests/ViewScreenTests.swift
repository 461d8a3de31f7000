import MountStatus
import MountView
import SeededRandom
import Testing
import TextFormat

@Suite struct ViewScreenTests {
  @Test func theScreenOfACommonTerminal() {
    var view = sampleView()
    let lines = view.text()
    let expected = """
      httpfs  /mnt/remote                                                     up 1m01s
      [█▎                        ]   4%  55 MiB of 1.1 GiB  5.2 MiB/s  ETA 10s
      5 files: 1 complete, 1 waiting, 1 downloading, 1 failed, 1 unknown  2 reads wait
      https servers are NOT verified: what they send may be anybody's
       STATE       PROGRESS    %  SIZE   SPEED    ETA CON NAME
      >waiting     [      ]  <1%    1G       -      -   1 stuck.bin
       downloading [███   ]  50%  100M  5.2M/s    10s   4 images/big.iso
       failed                  ?     ?       -      -   0 gone.bin
       complete    [██████] 100%    4M       -      -   0 done.bin
       unknown                 ?     ?       -      -   0 new.txt






      ── 1-5 of 5 ── by activity ─────────────────────────────────────────────────────
      stuck.bin
      waiting  128 KiB at 5 MiB for 3.1 s (and 1 more): the server has sent nothing f…
      bytes    1 MiB of 1 GiB cached, 1 MiB fetched, 3 requests, 0 retries
      version  not known yet
      url      https://example.org/stuck.bin

      q quit  ? help  / filter  s sort  a active  p pause  f prefetch  c cancel
      """
    #expect(
      lines == expected.split(separator: "\n", omittingEmptySubsequences: false).map(String.init))
  }

  @Test func rateLimitsAreShownBesideTheSpeedAndForTheSelectedFile() {
    var report = sample
    report.rateLimitBytesPerSecond = 10 << 20
    report.files[3].rateLimitBytesPerSecond = 500 << 10
    var view = sampleView(of: report)
    #expect(view.text()[1].hasSuffix("55 MiB of 1.1 GiB  5.2 MiB/s of 10 MiB/s  ETA 10s"))
    #expect(view.text().contains("version  not known yet, at most 500 KiB/s"))
    report.files[1].speedBytesPerSecond = 0
    report.totals.speedBytesPerSecond = 0
    view.take(report)
    #expect(view.text()[1].hasSuffix("55 MiB of 1.1 GiB  at most 10 MiB/s"))
  }

  @Test func whatIsNotKnownYetIsSaid() {
    var view = StatusView(mountpoint: "/mnt/remote")
    #expect(view.text(rows: 12).prefix(2) == ["httpfs  /mnt/remote", "waiting for the mount…"])
    view.unansweredSeconds = 7
    #expect(view.text().contains("the mount does not answer for 7 s"))
    view.failure = "cannot read\u{7}"
    #expect(view.text().contains(#"cannot read\u{7}"#))
    #expect(view.type("q") == [.quit])
  }

  @Test func aTimeBeyondAllPatienceFitsItsColumn() {
    var report = sample
    report.files[1].etaSeconds = 20_916_000
    var view = sampleView(of: report)
    #expect(view.text().contains { $0.contains("  >99d   4 images/big.iso") })
    report.files[1].etaSeconds = 100 * 86_400 - 10
    view.take(report)
    #expect(view.text().contains { $0.contains(" 99d23h   4 images/big.iso") })
  }

  @Test func aMirrorThatIsNotUsedIsNamed() {
    var report = sample
    report.files[3].mirrors = [
      MirrorStatus(url: "https://a.example/f", state: .verified),
      MirrorStatus(url: "https://b.example/f", state: .refused, reason: "another length"),
    ]
    var view = sampleView(of: report)
    #expect(view.text().contains("mirror   https://b.example/f is refused: another length"))
    #expect(!view.text().contains { $0.contains("a.example") })
  }

  @Test("A count is shown whole or not at all, the waiting reads first", arguments: 1...130)
  func countsAreNeverCut(columns: Int) {
    var report = sample
    report.totals.files = 12_345
    report.totals.waitingReads = 678
    report.totals.retries = 90
    var view = sampleView(of: report)
    let screen = view.screen(columns: columns, rows: 24, isUTF8: true)
    let counts = screen.lines[2].text
    guard columns >= 12 else { return }
    #expect(counts.hasPrefix("5 files:") || counts.hasPrefix("12345 files:"), "\(counts)")
    #expect(!counts.contains("…"))
    if columns >= 28 { #expect(counts.contains("  678 reads wait"), "\(counts)") }
    if columns >= 126 { #expect(counts.hasSuffix("  90 retries  24 requests"), "\(counts)") }
  }

  @Test("Names have a third of a common terminal, and figures their units at every width")
  func roomForNames() {
    var report = sample
    report.files[1].name = "debian-12.5.0-amd64-netinst.iso"
    var view = sampleView(of: report)
    #expect(view.text(columns: 80).contains { $0.hasSuffix(" debian-12.5.0-…4-netinst.iso") })
    #expect(view.text(columns: 84).contains { $0.hasSuffix(" debian-12.5.0-amd64-netinst.iso") })
    #expect(view.text(columns: 80).contains { $0.contains("  100M  5.2M/s ") })
    #expect(view.text(columns: 100).contains { $0.contains("    100 MiB    5.2 MiB/s ") })
  }

  @Test("A listing that cannot be read is named above the files, with the reason")
  func failedListings() {
    var report = sample
    report.failedListings = [
      FailedListing(
        directory: "d\u{1B}/", url: "http://h/d/", reason: "HTTP 404 Not Found; check the URL",
        showsEarlierNames: false)
    ]
    var view = sampleView(of: report)
    #expect(
      view.text().contains(#"no listing of 'd\u{1B}/': HTTP 404 Not Found; check the URL"#))
  }

  @Test("A file whose open waits says why in its details")
  func waitingOpen() {
    var report = sample
    report.files[3].waitingReads = []
    report.files[3].waitingOpen = WaitingOpen(
      waitedSeconds: 2, reason: "connecting to the server for 2 s")
    var view = sampleView(of: report)
    #expect(view.text().contains("waiting  open for 2.0 s: connecting to the server for 2 s"))
  }

  @Test func manyColumnsShowMore() {
    var view = sampleView()
    let titles = view.text(columns: 120).first { $0.hasSuffix(" NAME") } ?? ""
    #expect(
      titles.split(separator: " ").joined(separator: " ")
        == "STATE PROGRESS % CACHED SIZE SPEED ETA CON RETRY NAME")
    let few = view.text(columns: 40).first { $0.hasSuffix(" NAME") } ?? ""
    #expect(few.split(separator: " ").joined(separator: " ") == "STATE % NAME")
  }

  @Test(
    arguments: [
      (1, 1), (2, 1), (1, 2), (3, 3), (20, 5), (40, 9), (60, 15), (80, 24), (79, 12), (120, 40),
      (200, 60), (5, 200), (1000, 3),
    ])
  func aScreenNeverExceedsItsSize(columns: Int, rows: Int) {
    for isUTF8 in [true, false] {
      for keys in ["", "?", "/件", "e", "n12", "l", "dsa", "G"] {
        var view = sampleView(of: oddReport)
        view.unansweredSeconds = 3
        view.type(keys)
        let screen = view.screen(columns: columns, rows: rows, isUTF8: isUTF8)
        #expect(screen.lines.count == rows)
        for line in screen.lines {
          #expect(displayWidth(line.text) <= columns, "\(line.text)")
          #expect(isUTF8 || line.text.utf8.allSatisfy { (0x20..<0x7F).contains($0) })
        }
        if let cursor = screen.cursor {
          #expect((0..<rows).contains(cursor.row) && (0..<columns).contains(cursor.column))
        }
      }
    }
  }

  /// Unusual names that a server may provide.
  private let oddReport: StatusReport = {
    let names = [
      "文件名/很长的名字/電影.mkv", "a\u{1B}[2J\u{7}\r\nb", "שלום עולם.txt", "\u{202E}exe.txt",
      String(repeating: "x", count: 4000), String(repeating: "文", count: 500), "👨‍👩‍👧 family.jpg",
      "e\u{301}\u{302}\u{303}.txt", "\u{301}starts with a mark", "", " ",
    ]
    return StatusReport(
      mountpoint: "/mnt/\u{1B}[31m文件", uptimeSeconds: 1,
      files: names.enumerated().map { index, name in
        FileStatus(
          name: name, url: "http://h/" + name, state: FileState.allCases[index], length: .max,
          cachedBytes: .max - 1, speedBytesPerSecond: .max, etaSeconds: 1e300, connections: 100_000,
          retries: 1_000_000, lastError: name, validator: name,
          waitingReads: [
            WaitingRead(offset: .max, byteCount: .max, waitedSeconds: .infinity, reason: name)
          ])
      }, cache: CacheStatus(error: "no\nspace", failures: 1), verifiesServers: false)
  }()

  @Test func theNamesOfAllFilesBeginInTheSameColumn() {
    var view = sampleView(of: oddReport)
    view.type("s")
    let screen = view.screen(columns: 100, rows: 40, isUTF8: true)
    guard let start = screen.lines.firstIndex(where: { $0.text.hasSuffix(" NAME") }) else {
      Issue.record("no titles")
      return
    }
    let column = displayWidth(screen.lines[start].text) - "NAME".count
    for line in screen.lines[(start + 1)...].prefix(11) {
      // The figures are ASCII and the bar is not: each of their characters takes one column.
      let figures = line.text.unicodeScalars.prefix(column)
      #expect(displayWidth(String(figures)) == column)
      #expect(figures.last == " ", "\(line.text)")
    }
    let names = view.screen(columns: 200, rows: 40, isUTF8: true).lines
    #expect(names.contains { $0.text.contains(#"a\u{1B}[2J\u{7}\u{D}\u{A}b"#) })
    #expect(names.contains { $0.text.contains(#"\u{202E}exe.txt"#) })
  }

  @Test func tenThousandFilesAreShownAtOnce() {
    var generator = SeededGenerator(seed: 62)
    let files = (0..<10_000).map { index in
      FileStatus(
        name: "directory/of/many/file-\(index).parquet", url: "https://example.org/f\(index)",
        state: FileState.allCases.randomElement(using: &generator) ?? .idle, length: 1 << 30,
        cachedBytes: Int64.random(in: 0...(1 << 30), using: &generator), validator: #"ETag "x""#)
    }
    let report = StatusReport(mountpoint: "/m", uptimeSeconds: 0, files: files)
    let json = report.json()
    let clock = ContinuousClock()
    var view = StatusView(mountpoint: "/m")
    let decoding = clock.measure { _ = try? StatusReport(json: json) }
    let taking = clock.measure { view.take(report) }
    view.type("s")
    let byName = clock.measure { view.take(report) }
    view.type("/FILE-99")
    let filtered = clock.measure { view.take(report) }
    _ = view.press(.escape)
    let drawing = clock.measure {
      for _ in 0..<100 {
        _ = view.press(.down)
        _ = view.screen(columns: 80, rows: 24, isUTF8: true)
      }
    }
    print(
      "10,000 files, \(json.count) bytes: decoded in \(decoding), ordered in \(taking), by name in"
        + " \(byName), filtered in \(filtered), drawn in \(drawing / 100)")
    // The response to a key is imperceptibly fast, even on a busy machine.
    #expect(drawing / 100 < .milliseconds(50))
    #expect(taking < .seconds(2))
    _ = view.press(.end)
    #expect(view.names().last?.hasPrefix(">") == true)
    #expect(view.text().contains { $0.hasPrefix("── 9989-10000 of 10000 ── by name") })
  }
}
