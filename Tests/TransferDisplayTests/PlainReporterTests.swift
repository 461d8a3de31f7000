import SeededRandom
import Testing
import TransferDisplay

@Suite struct PlainReporterTests {
  /// The lines for the states of one file at the given times.
  private func lines(_ steps: [(Double, DisplayItem)], isUpload: Bool = false) -> [String] {
    var reporter = PlainReporter()
    return steps.flatMap { time, item in
      reporter.lines(for: DisplaySnapshot(items: [item], elapsed: time, isUpload: isUpload))
    }
  }

  private func running(_ mebibytes: Int64) -> DisplayItem {
    bigFile.with { $0.transferredByteCount = mebibytes * mebibyte }
  }

  private var finished: DisplayItem {
    running(1024).with {
      $0.state = .finished
      $0.elapsed = 10.43
    }
  }

  @Test func onlyChangingFilesAreLookedAt() {
    var totals = DisplayTotals()
    totals.add(running(1))
    totals.addQueued(2)
    let waiting = (2...3).map { DisplayItem(id: $0, name: "w") }
    let all = DisplaySnapshot(items: [running(1)] + waiting, elapsed: 1)
    #expect(totals == all.totals)
    func snapshot(_ changing: [Int]) -> DisplaySnapshot {
      DisplaySnapshot(
        items: all.items, changing: changing, failed: [], totals: totals, elapsed: 1,
        isUpload: false)
    }
    var (plain, json) = (PlainReporter(), JSONReporter())
    #expect(plain.lines(for: snapshot([])).isEmpty)
    #expect(plain.lines(for: snapshot([0])).count == 1)
    #expect(json.progress(for: snapshot([])).isEmpty)
    #expect(json.progress(for: snapshot([0, 1])).count { $0 == UInt8(ascii: "\n") } == 2)
  }

  @Test func aDownloadIsToldFromStartToEnd() {
    #expect(
      lines([
        (0, running(0).with { $0.state = .queued }),
        (0.1, running(0).with { $0.state = .connecting }),
        (0.2, running(1)), (3, running(300)), (5.3, running(440)), (6, running(600)),
        (10.5, finished),
        (11, finished),
      ]) == [
        "big.iso: 1 GiB from http://example.com/big.iso",
        "big.iso: 42%, 440 MiB of 1 GiB, 98.2 MiB/s, ETA 6s",
        "big.iso: 1 GiB in 10.4s (98.2 MiB/s)",
      ])
  }

  @Test("The mirror that answered is named, not the first one")
  func mirrors() {
    let item = running(1).with { $0.mirror = "http://mirror.example/big.iso" }
    #expect(lines([(1, item)]) == ["big.iso: 1 GiB from http://mirror.example/big.iso"])
  }

  @Test func anUploadIsToldTo() {
    #expect(
      lines([(0, running(1))], isUpload: true) == ["big.iso: 1 GiB to http://example.com/big.iso"])
  }

  @Test func anUnknownLengthIsNotInvented() {
    let item = running(5).with {
      $0.totalByteCount = nil
      $0.timeLeft = nil
    }
    #expect(
      lines([(0, item), (31, item)]) == [
        "big.iso: unknown length from http://example.com/big.iso", "big.iso: 5 MiB, 98.2 MiB/s",
      ])
  }

  @Test func aResumedDownloadSaysWhereAndCountsItsOwnSpeed() {
    let resumed = running(440).with { $0.resumedByteCount = 440 * mebibyte }
    let end = finished.with {
      $0.resumedByteCount = 440 * mebibyte
      $0.elapsed = 5.84
    }
    #expect(
      lines([(0, resumed), (6, end)]) == [
        "big.iso: 1 GiB from http://example.com/big.iso",
        "big.iso: resuming at 440 MiB of 1 GiB",
        "big.iso: 1 GiB in 5.8s (100 MiB/s), resumed at 440 MiB",
      ])
    let restarted = running(0)
    #expect(lines([(0, resumed), (1, restarted)]).last == "big.iso: starting over")
  }

  @Test func retriesFailuresAndPausesAreToldOnceEach() {
    let waiting = running(440).with { $0.state = .waiting(reason: "HTTP 503\n, retry 1 of 3") }
    let failed = running(440).with { $0.state = .failed("HTTP 503") }
    let paused = running(440).with { $0.state = .paused }
    let cancelled = running(440).with { $0.state = .cancelled }
    #expect(
      lines([
        (0, running(0)), (1, waiting), (2, waiting), (3, running(450)), (4, waiting), (5, paused),
        (6, paused), (7, failed), (8, failed),
      ]) == [
        "big.iso: 1 GiB from http://example.com/big.iso",
        #"big.iso: waiting: HTTP 503\u{A}, retry 1 of 3"#,
        #"big.iso: waiting: HTTP 503\u{A}, retry 1 of 3"#,
        "big.iso: paused at 440 MiB of 1 GiB",
        "big.iso: failed: HTTP 503",
      ])
    #expect(
      lines([(0, running(440)), (1, cancelled), (2, cancelled)])
        == [
          "big.iso: 1 GiB from http://example.com/big.iso",
          "big.iso: cancelled at 440 MiB of 1 GiB",
        ])
  }

  @Test func aSlowFileIsMentionedAgainAfterHalfAMinute() {
    let steps = (0...100).map { (Double($0), running(1)) }
    #expect(lines(steps).count == 1 + 3)
  }

  /// At most one line in 5 s for each file, whatever the speed, and at most ten for progress.
  @Test(arguments: [3, 20, 60, 290])
  func progressIsRare(duration: Int) {
    var reporter = PlainReporter()
    var times: [Double] = []
    for tenth in 0..<(duration * 10) {
      let item = running(Int64(1024 * tenth / (duration * 10)))
      let time = Double(tenth) / 10
      let lines = reporter.lines(for: DisplaySnapshot(items: [item], elapsed: time))
      if !lines.isEmpty { times.append(time) }
    }
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 5 })
    #expect((duration / 29...10).contains(times.count))
  }

  @Test(arguments: 0..<50)
  func noLineHasControlCharacters(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var reporter = PlainReporter()
    for _ in 0..<30 {
      let snapshot = DisplaySnapshot.random(using: &random)
      let lines = reporter.lines(for: snapshot) + SummaryText.lines(for: snapshot).map(\.text)
      for line in lines { #expect(isPlain(line), "\(line)") }
    }
  }
}
