import SeededRandom
import Testing
import TextFormat
import TransferDisplay

@Suite struct ProgressScreenTests {
  private func texts(
    _ items: [DisplayItem], columns: Int, rows: Int = 24, isUTF8: Bool = false,
    elapsed: Double = 4.5
  ) -> [String] {
    ProgressScreen(columns: columns, rows: rows, isUTF8: isUTF8)
      .lines(of: DisplaySnapshot(items: items, elapsed: elapsed)).map(\.text)
  }

  // MARK: - Size

  @Test(arguments: 1...200)
  func noLineIsWiderThanTheTerminal(columns: Int) {
    var random = SeededGenerator(seed: UInt64(columns))
    for _ in 0..<30 {
      let snapshot = DisplaySnapshot.random(using: &random)
      let rows = Int.random(in: 0...20, using: &random)
      let isUTF8 = Bool.random(using: &random)
      let lines = ProgressScreen(columns: columns, rows: rows, isUTF8: isUTF8).lines(of: snapshot)
      #expect(lines.count <= max(0, rows - 1))
      for line in lines {
        #expect(displayWidth(line.text) <= columns, "\(line.text)")
        #expect(isPlain(line.text))
        #expect(isUTF8 || line.text.utf8.allSatisfy { $0 < 0x80 })
      }
    }
  }

  @Test(arguments: 1...200)
  func everyWidthShowsSomethingOfEachFile(columns: Int) {
    let states: [DisplayItem.State] = [
      .queued, .connecting, .running, .waiting(reason: "HTTP 503"), .paused, .finished,
      .failed("HTTP 404"), .cancelled,
    ]
    let items = states.enumerated().map { index, state in
      bigFile.with { $0.state = state }.with { $0.connections = index }
    }
    let lines = texts(items, columns: columns, isUTF8: true)
    #expect(lines.count == items.count + 1)
    #expect(lines.allSatisfy { !$0.isEmpty })
  }

  // MARK: - Exact lines

  /// The fields disappear in the order of their priority.
  @Test(
    arguments: [
      (
        120,
        "big.iso   42% [================>                     ] 440 MiB/1 GiB  98.2 MiB/s  ETA 6s  16 conn"
      ),
      (80, "big.iso   42% [========>          ] 440 MiB/1 GiB  98.2 MiB/s  ETA 6s  16 conn"),
      (72, "big.iso   42% [====>      ] 440 MiB/1 GiB  98.2 MiB/s  ETA 6s  16 conn"),
      (64, "big.iso   42%  440 MiB/1 GiB  98.2 MiB/s  ETA 6s  16 conn"),
      (55, "big.iso   42%  440 MiB/1 GiB  98.2 MiB/s  ETA 6s"),
      (45, "big.iso   42%  440 MiB/1 GiB  98.2 MiB/s"),
      (40, "big.iso   42%  440 MiB  98.2 MiB/s"),
      (25, "big.iso   42%  440 MiB"),
      (20, "big.iso   42%"),
      (10, "big.   42%"),
      (9, "big   42%"),
      (8, "42%"),
      (3, "42%"),
      (2, "bi"),
      (1, "b"),
    ])
  func aRunningFileLosesFieldsByPriority(columns: Int, line: String) {
    #expect(texts([bigFile], columns: columns) == [line])
  }

  @Test func blocksDivideTheBarByEight() {
    #expect(
      texts([bigFile], columns: 80, isUTF8: true) == [
        "big.iso   42% [████████▏          ] 440 MiB/1 GiB  98.2 MiB/s  ETA 6s  16 conn"
      ])
  }

  private let several = [
    bigFile,
    DisplayItem(
      id: 2, name: "debian-12.5.0-amd64-netinst.iso", state: .running,
      transferredByteCount: 5 * mebibyte, totalByteCount: 629 * mebibyte,
      bytesPerSecond: 1.5 * Double(mebibyte), timeLeft: 416, connections: 1),
    DisplayItem(
      id: 3, name: "page", state: .running, transferredByteCount: 300_000,
      bytesPerSecond: 20_000, connections: 1),
    DisplayItem(id: 4, name: "映画.mkv", state: .waiting(reason: "HTTP 503"), elapsed: 1),
    DisplayItem(
      id: 5, name: "a.zip", state: .finished, transferredByteCount: gibibyte,
      totalByteCount: gibibyte, elapsed: 10.43),
    DisplayItem(id: 6, name: "b.zip", state: .failed("HTTP 404 Not Found")),
    DisplayItem(id: 7, name: "c.zip"),
  ]

  @Test func severalFilesOn80Columns() {
    #expect(
      texts(several, columns: 80, isUTF8: true).joined(separator: "\n") == """
        big.iso            42% [██▌   ] 440 MiB/1 GiB  98.2 MiB/s  ETA 6s     16 conn
        debian-1…nst.iso    0% [      ] 5 MiB/629 MiB   1.5 MiB/s  ETA 6m56s   1 conn
        page                   [   ███] 293 KiB        19.5 KiB/s              1 conn
        映画.mkv          waiting: HTTP 503
        a.zip             100%  1 GiB in 10.4s (98.2 MiB/s)
        b.zip             failed: HTTP 404 Not Found
        c.zip             queued
        total 1/7          20% [█▏    ] 1.4 GiB        99.7 MiB/s             18 conn
        """)
  }

  @Test func severalFilesOn40Columns() {
    #expect(
      texts(several, columns: 40, isUTF8: true).joined(separator: "\n") == """
        big.iso        42%  440 MiB  98.2 MiB/s
        debian…t.iso    0%  5 MiB     1.5 MiB/s
        page             /  293 KiB  19.5 KiB/s
        映画.mkv      waiting: HTTP 503
        a.zip         100%  1 GiB in 10.4s (98.…
        b.zip         failed: HTTP 404 Not Found
        c.zip         queued
        total 1/7      20%  1.4 GiB  99.7 MiB/s
        """)
  }

  @Test func severalFilesOn20Columns() {
    #expect(
      texts(several, columns: 20, isUTF8: true).joined(separator: "\n") == """
        big.iso          42%
        debian-…st.iso    0%
        page               /
        映画.mkv  waiting: …
        a.zip           100%
        b.zip     failed: H…
        c.zip         queued
        total 1/7        20%
        """)
  }

  // MARK: - Percentage

  @Test(
    arguments: [
      (0, 100, 0), (1, 1000, 0), (43, 100, 43), (999, 1000, 99), (100, 100, 99), (200, 100, 99),
      (0, 0, 0), (.max, .max, 99), (.max - 1, .max, 99),
    ] as [(Int64, Int64, Int)])
  func nothingIsCompleteBeforeItIsFinished(part: Int64, whole: Int64, percent: Int) {
    let item = bigFile.with {
      $0.transferredByteCount = part
      $0.totalByteCount = whole
    }
    #expect(item.percent == percent)
    #expect(texts([item], columns: 100)[0].contains("\(percent)% ["))
    #expect(!texts([item], columns: 100, isUTF8: true)[0].contains("█]"))
    #expect(item.with { $0.state = .finished }.percent == 100)
  }

  @Test func theTotalIsCompleteOnlyWhenAllFilesAre() {
    let done = bigFile.with {
      $0.state = .finished
      $0.transferredByteCount = gibibyte
    }
    let last = done.with { $0.state = .running }
    #expect(DisplaySnapshot(items: [done, last], elapsed: 1).totals.percent == 99)
    #expect(DisplaySnapshot(items: [done, done], elapsed: 1).totals.percent == 100)
    let failed = done.with { $0.state = .failed("checksum") }
    #expect(DisplaySnapshot(items: [done, failed], elapsed: 1).totals.percent == 99)
  }

  @Test func theTotalIsUnknownWhileAnyLengthThatMayComeIs() {
    let unknown = bigFile.with { $0.totalByteCount = nil }
    let totals = DisplaySnapshot(items: [bigFile, unknown], elapsed: 1).totals
    #expect(totals.totalByteCount == nil)
    #expect(totals.percent == 21)
    #expect(totals.timeLeft == nil)
    let finished = unknown.with { $0.state = .finished }
    let known = DisplaySnapshot(items: [bigFile, finished], elapsed: 1).totals
    #expect(known.totalByteCount == gibibyte + 440 * mebibyte)
  }

  @Test func lengthsBeyondAllBoundsDoNotStopTheDisplay() {
    let huge = bigFile.with {
      $0.totalByteCount = .max
      $0.transferredByteCount = .max
    }
    let totals = DisplaySnapshot(items: [huge, huge], elapsed: 1).totals
    #expect(totals.totalByteCount == .max)
    #expect(totals.transferredByteCount == .max)
  }

  // MARK: - Unknown length

  @Test func anUnknownLengthHasAMovingMarkAndNoPercentage() {
    let page = several[2].with { $0.name = "page" }
    let line = texts([page], columns: 60, elapsed: 0)[0]
    #expect(line.hasPrefix("page  [<=>  "))
    #expect(line.hasSuffix("] 293 KiB  19.5 KiB/s  1 conn"))
    #expect(!line.contains("%") && !line.contains("ETA"))
    let positions = (0..<200).map { tenth in
      let text = texts([page], columns: 60, elapsed: Double(tenth) / 10)[0]
      return text.prefix { $0 != "<" }.count
    }
    #expect(zip(positions, positions.dropFirst()).allSatisfy { abs($0 - $1) <= 1 })
    #expect(Set(positions).count > 10)
  }

  @Test func withoutABarASpinnerTurns() {
    let page = several[2]
    #expect(texts([page], columns: 30, elapsed: 0) == ["page  |  293 KiB  19.5 KiB/s"])
    #expect(texts([page], columns: 30, elapsed: 0.15) == ["page  /  293 KiB  19.5 KiB/s"])
  }

  // MARK: - More files than rows

  @Test func whatRunsIsShownFirstAndTheRestIsCounted() {
    func items(_ count: Int, _ name: String, _ state: DisplayItem.State) -> [DisplayItem] {
      (0..<count).map { index in
        bigFile.with {
          $0.name = "\(name)\(index)"
          $0.state = state
        }
      }
    }
    let all =
      items(12, "done", .finished) + items(40, "next", .queued) + items(3, "bad", .failed("404"))
      + items(2, "now", .running)
    let names = texts(all, columns: 80, rows: 8).map { String($0.prefix { $0 != " " }) }
    #expect(names == ["now0", "now1", "bad0", "bad1", "bad2", "and", "total"])
    #expect(texts(all, columns: 80, rows: 8)[5] == "and 12 finished, 40 queued")
    #expect(
      texts(all, columns: 80, rows: 5)[2] == "and 12 finished, 3 failed, 40 queued")
    #expect(texts(all, columns: 80, rows: 3)[0] == "and 2 active, 12 finished, 3 failed, 40 queued")
    #expect(texts(all, columns: 80, rows: 2).count == 1)
    #expect(texts(all, columns: 80, rows: 1) == [])
    #expect(texts(all, columns: 80, rows: 59).count == 58)
  }
}
