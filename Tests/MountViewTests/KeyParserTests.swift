import MountView
import SeededRandom
import Testing

@Suite struct KeyParserTests {
  private func keys(_ text: String) -> [Key] {
    var parser = KeyParser()
    let keys = parser.keys(from: text.utf8)
    return keys + parser.flush()
  }

  @Test(
    arguments: [
      ("q", .character("q")), ("é", .character("é")), ("件", .character("件")),
      ("😀", .character("😀")), ("\r", .enter), ("\n", .enter), ("\u{7F}", .backspace),
      ("\u{8}", .backspace), ("\u{3}", .control("c")), ("\u{1A}", .control("z")),
      ("\u{1B}", .escape), ("\u{1B}[A", .up), ("\u{1B}OA", .up), ("\u{1B}[B", .down),
      ("\u{1B}[1;2B", .down), ("\u{1B}[5~", .pageUp), ("\u{1B}[6;5~", .pageDown),
      ("\u{1B}[H", .home), ("\u{1B}[1~", .home), ("\u{1B}OF", .end), ("\u{1B}[4~", .end),
      ("\u{1B}OM", .enter),
    ] as [(String, Key)])
  func aKeyIsUnderstood(bytes: String, key: Key) {
    #expect(keys(bytes) == [key])
    // However its bytes are split.
    var parser = KeyParser()
    var found = bytes.utf8.flatMap { parser.keys(from: [$0]) }
    found += parser.flush()
    #expect(found == [key])
  }

  @Test func whatMeansNothingIsReadOver() {
    // F5, Alt-x, Alt-é, cursor left, Ctrl-Space.
    #expect(keys("\u{1B}[15~\u{1B}x\u{1B}é\u{1B}[D\0q") == [.character("q")])
    var parser = KeyParser()
    #expect(parser.keys(from: [0xFF, 0xC0, 0x80, 0x71]) == [.character("q")])
    #expect(keys("\u{1B}\u{1B}[A") == [.escape, .up])
  }

  @Test func escapeAloneIsAKeyOnlyAfterAMoment() {
    var parser = KeyParser()
    #expect(parser.keys(from: [0x1B]).isEmpty)
    #expect(parser.isWaiting)
    #expect(parser.flush() == [.escape])
    #expect(!parser.isWaiting)
  }

  @Test func noiseIsNotKept() {
    var generator = SeededGenerator(seed: 61)
    var parser = KeyParser()
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...40, using: &generator)
      let bytes = (0..<count).map { _ in
        Bool.random(using: &generator)
          ? UInt8.random(in: 0...255, using: &generator) : 0x1B
      }
      _ = parser.keys(from: bytes)
    }
    _ = parser.flush()
    #expect(parser.keys(from: "q".utf8) == [.character("q")])
  }
}
