import Testing
import TransferDisplay

@Suite struct SummaryTextTests {
  private let done = bigFile.with {
    $0.state = .finished
    $0.transferredByteCount = gibibyte
  }

  private func texts(_ items: [DisplayItem]) -> [String] {
    SummaryText.lines(for: DisplaySnapshot(items: items, elapsed: 12.3)).map(\.text)
  }

  @Test func successIsOneLine() {
    #expect(texts([done, done, done]) == ["3 files finished, 3 GiB in 12.3s (249.8 MiB/s)"])
  }

  @Test func bytesOfAnEarlierRunDoNotCountAsSpeed() {
    #expect(
      texts([done.with { $0.resumedByteCount = 512 * mebibyte }])
        == ["1 file finished, 512 MiB in 12.3s (41.6 MiB/s), 512 MiB of an earlier run"])
  }

  @Test func eachFailureHasItsLineWithTheReason() {
    let items = [
      done,
      DisplayItem(id: 2, name: "a\n.zip", state: .failed("HTTP 404")),
      DisplayItem(id: 3, name: "b.zip", state: .cancelled),
      DisplayItem(id: 4, name: "c.zip", state: .paused),
      DisplayItem(id: 5, name: "d.zip", state: .failed("checksum mismatch")),
    ]
    #expect(
      texts(items) == [
        "1 file finished, 2 failed, 1 cancelled, 1 not finished, 1 GiB in 12.3s (83.3 MiB/s)",
        #"a\u{A}.zip: failed: HTTP 404"#,
        "d.zip: failed: checksum mismatch",
      ])
  }

  @Test func theToneTellsHowItWent() {
    func tone(_ items: [DisplayItem]) -> DisplayLine.Tone? {
      SummaryText.lines(for: DisplaySnapshot(items: items, elapsed: 1)).first?.tone
    }
    #expect(tone([done]) == .finished)
    #expect(tone([done, done.with { $0.state = .cancelled }]) == .normal)
    #expect(tone([done, done.with { $0.state = .failed("x") }]) == .failed)
  }
}
