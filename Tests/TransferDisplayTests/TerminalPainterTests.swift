import SeededRandom
import Testing
import TransferDisplay

@Suite struct TerminalPainterTests {
  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  private func visible(_ lines: [DisplayLine]) -> [String] {
    lines.map { TinyTerminal.trimmed($0.text) }
  }

  // MARK: - On a terminal

  /// Draws, permanent lines, resizes and typing in any order leave no remains and overwrite no
  /// earlier line.
  @Test(arguments: 0..<60)
  func theTerminalShowsThePermanentLinesAndTheLastRendering(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var terminal = TinyTerminal(columns: .random(in: 3...120, using: &random), height: .max)
    var painter = TerminalPainter(color: Bool.random(using: &random), isUTF8: true)
    // The earlier output of other programs.
    terminal.write(Array("$ httpfs get\r\n".utf8))
    var permanent = [DisplayLine("$ httpfs get")]
    var lines: [DisplayLine] = []
    for _ in 0..<40 {
      if Int.random(in: 0...2, using: &random) == 0 {
        terminal.resize(columns: .random(in: 3...120, using: &random))
      }
      let columns = terminal.columns
      let wrapCount = terminal.wrapCount
      if !lines.isEmpty, Int.random(in: 0...9, using: &random) == 0 {
        terminal.write(Array("^C".utf8))
      }
      lines = []
      let added = DisplaySnapshot.random(using: &random).items.prefix(2).compactMap(\.outcome)
      switch Int.random(in: 0...9, using: &random) {
      case 0:
        terminal.write(painter.clear(columns: columns))
      case 1, 2:
        lines = rendering(columns: columns, &random)
        terminal.write(painter.draw(lines, above: added, columns: columns))
        permanent += added
      case 3:
        terminal.write(painter.draw([], columns: columns))
        terminal.write(painter.printAbove(added, columns: columns))
        permanent += added
      default:
        lines = rendering(columns: columns, &random)
        terminal.write(painter.draw(lines, columns: columns))
        #expect(terminal.wrapCount == wrapCount)
      }
      #expect(terminal.lines == visible(permanent + lines))
      #expect(terminal.unknownSequences == [])
    }
  }

  /// On a terminal with the given number of rows, only permanent lines scroll away.
  @Test(arguments: 2..<30)
  func aRenderingStaysWithinTheRowsOfTheTerminal(rows: Int) {
    var random = SeededGenerator(seed: UInt64(rows))
    var terminal = TinyTerminal(columns: 60, height: rows)
    var painter = TerminalPainter(color: false, isUTF8: true)
    var permanent: [DisplayLine] = []
    let screen = ProgressScreen(columns: 60, rows: rows, isUTF8: true)
    for step in 0..<50 {
      let lines = screen.lines(of: .random(using: &random))
      let added = step % 7 == 0 ? [DisplayLine("file \(step): done")] : []
      permanent += added
      terminal.write(painter.draw(lines, above: added, columns: 60))
      #expect(terminal.lines == visible(permanent + lines))
    }
  }

  @Test func linesPrintedAboveLeaveTheBarsInPlace() {
    var terminal = TinyTerminal(columns: 20, height: 10)
    var painter = TerminalPainter(color: false, isUTF8: true)
    terminal.write(painter.draw([DisplayLine("one"), DisplayLine("two")], columns: 20))
    terminal.write(painter.printAbove([DisplayLine("done")], columns: 20))
    #expect(terminal.lines == ["done", "one", "two"])
    terminal.write(painter.clear(columns: 20))
    #expect(terminal.lines == ["done"])
  }

  @Test func linesThatTheTerminalWrappedAreRemoved() {
    var terminal = TinyTerminal(columns: 80, height: 24)
    var painter = TerminalPainter(color: false, isUTF8: true)
    terminal.write(Array("before\r\n".utf8))
    let wide = DisplayLine(String(repeating: "文", count: 40))
    terminal.write(painter.draw([wide, DisplayLine("b")], columns: 80))
    // 9 columns hold 4 wide characters: 10 rows, not 9.
    terminal.resize(columns: 9)
    terminal.write(painter.draw([DisplayLine("a"), DisplayLine("b")], columns: 9))
    #expect(terminal.lines == ["before", "a", "b"])
  }

  private func rendering(columns: Int, _ random: inout SeededGenerator) -> [DisplayLine] {
    ProgressScreen(columns: columns, rows: 24, isUTF8: true).lines(of: .random(using: &random))
  }

  // MARK: - Bytes

  @Test func theBytesAreThoseOfAnyTerminal() {
    var painter = TerminalPainter(color: false, isUTF8: true)
    #expect(
      text(painter.draw([DisplayLine("ab"), DisplayLine("cdef")], columns: 4))
        == "ab\u{1B}[K\r\n\u{1B}[Kcdef\r\n")
    #expect(
      text(painter.draw([DisplayLine("x")], columns: 4))
        == "\r\u{1B}[2Ax\u{1B}[K\r\n\u{1B}[J")
    #expect(
      text(painter.printAbove([DisplayLine("done")], columns: 4))
        == "\r\u{1B}[1A\u{1B}[Jdone\r\nx\u{1B}[K\r\n\u{1B}[J")
    #expect(text(painter.clear(columns: 4)) == "\r\u{1B}[1A\u{1B}[J")
    #expect(painter.clear(columns: 4) == [])
  }

  @Test func linesWiderThanTheTerminalAreCut() {
    var painter = TerminalPainter(color: false, isUTF8: true)
    #expect(text(painter.draw([DisplayLine("abcdef")], columns: 4)) == "\u{1B}[Kabc…\r\n")
  }

  @Test func coloursAppearOnlyWhenWanted() {
    let lines = [
      DisplayLine("a", tone: .failed), DisplayLine("b", tone: .finished), DisplayLine("c"),
    ]
    var colored = TerminalPainter(color: true, isUTF8: true)
    #expect(
      text(colored.draw(lines, columns: 9))
        == "\u{1B}[31ma\u{1B}[0m\u{1B}[K\r\n\u{1B}[32mb\u{1B}[0m\u{1B}[K\r\nc\u{1B}[K\r\n")
    var plain = TerminalPainter(color: false, isUTF8: true)
    #expect(text(plain.draw(lines, above: lines, columns: 9)).contains("m") == false)
  }

  @Test func aTerminalWithoutUTF8GetsASCIIOnly() {
    var painter = TerminalPainter(color: true, isUTF8: false)
    let line = DisplayLine("文件 …", tone: .failed)
    #expect(painter.draw([line], above: [line], columns: 9).allSatisfy { $0 < 0x80 })
  }

  @Test func controlCharactersOfNamesNeverReachTheTerminal() {
    var painter = TerminalPainter(color: false, isUTF8: true)
    let bytes = painter.draw([], above: [DisplayLine("a\u{1B}]0;x\u{7}\n\u{9B}2J")], columns: 80)
    #expect(text(bytes) == "\u{1B}[J" + #"a\u{1B}]0;x\u{7}\u{A}\u{9B}2J"# + "\r\n")
  }

  // MARK: - Rate

  @Test(arguments: 0..<5)
  func noMoreThanTenDrawsASecond(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var painter = TerminalPainter(color: false, isUTF8: true)
    var now = Double.random(in: 0...1e6, using: &random)
    var draws: [Double] = []
    for _ in 0..<5000 {
      now += .random(in: 0...0.03, using: &random)
      if painter.shouldDraw(now: now) { draws.append(now) }
    }
    for (index, draw) in draws.enumerated() where index + 10 < draws.count {
      #expect(draws[index + 10] - draw >= 0.999_999)
    }
    // Draws are not withheld either: 75 s with at least one every 0.13 s.
    #expect(draws.count > 500)
  }
}
