import Testing

/// The screen model must be right before it judges a progress display.
extension RealMounts {
  @Suite struct Screen {
    /// Output to a screen of 10 columns and 4 rows, and the resulting lines.
    struct Case: CustomTestStringConvertible, Sendable {
      let text: String
      let lines: [String]
      let testDescription: String

      init(_ description: String, _ text: String, _ lines: [String]) {
        (testDescription, self.text, self.lines) = (description, text, lines)
      }
    }

    static let cases = [
      Case("CR LF begins a line", "ab\r\ncd", ["ab", "cd"]),
      Case("LF alone keeps the column", "ab\ncd", ["ab", "  cd"]),
      Case("CR overwrites", "abcdef\rxy", ["xycdef"]),
      Case("erasing to the end of the line", "abcdef\rxy\u{1b}[K", ["xy"]),
      Case("erasing to the start of the line", "abcdef\u{1b}[3D\u{1b}[1K", ["    ef"]),
      Case("erasing the line", "abcdef\u{1b}[2Kx", ["      x"]),
      Case("a long line wraps", "abcdefghijklm", ["abcdefghij", "klm"]),
      Case("a full line does not wrap yet", "abcdefghij\rx", ["xbcdefghij"]),
      Case("a full line and CR LF leave no blank line", "abcdefghij\r\nx", ["abcdefghij", "x"]),
      Case("cursor up", "a\r\nb\r\nc\u{1b}[2A\rX", ["X", "b", "c"]),
      Case("cursor up without a number", "a\r\nb\u{1b}[A\rX", ["X", "b"]),
      Case("cursor up stops at the top", "a\r\nb\u{1b}[9A\rX", ["X", "b"]),
      Case("cursor down, right, left", "\u{1b}[B\u{1b}[4Cx\u{1b}[3Dy", ["", "  y x"]),
      Case("column and position", "\u{1b}[2;3Hx\u{1b}[Hy\u{1b}[5Gz", ["y   z", "  x"]),
      Case("erasing below", "aa\r\nbb\r\ncc\u{1b}[1A\u{1b}[1D\u{1b}[J", ["aa", "b"]),
      Case("erasing the screen", "aa\r\nbb\u{1b}[2J\u{1b}[Hc", ["c"]),
      Case("colours show nothing", "\u{1b}[1;31mred\u{1b}[0m.", ["red."]),
      Case("modes show nothing", "\u{1b}[?25la\u{1b}[?25h\u{1b}7b\u{1b}8", ["ab"]),
      Case("titles show nothing", "\u{1b}]0;title\u{7}a\u{1b}]0;t\u{1b}\\b", ["ab"]),
      Case("backspace and tabulator", "abc\u{8}X\tY", ["abX     Y"]),
      Case("wide characters have two columns", "日本語\rX\u{1b}[3Gab", ["Xab語"]),
      Case("a wide character does not fit in one column", "abcdefghi日", ["abcdefghi", "日"]),
      Case("a combining mark has none", "e\u{301}x\u{1b}[2GY", ["e\u{301}Y"]),
      Case("the screen scrolls", "1\r\n2\r\n3\r\n4\r\n5", ["2", "3", "4", "5"]),
      Case(
        "wrapping in the last line scrolls", "1\r\n2\r\n3\r\nabcdefghijk",
        ["2", "3", "abcdefghij", "k"]),
    ]

    /// The lines of a screen without blank ones at its end.
    private func seen(_ screen: ScreenModel) -> [String] {
      var lines = screen.lines
      while lines.last == "" { lines.removeLast() }
      return lines
    }

    @Test(arguments: cases)
    func `a user sees what a terminal shows`(_ example: Case) {
      var screen = ScreenModel(columns: 10, rows: 4)
      screen.write(example.text)
      #expect(seen(screen) == example.lines)
    }

    @Test(arguments: cases)
    func `it does not matter how the bytes are cut`(_ example: Case) {
      var screen = ScreenModel(columns: 10, rows: 4)
      for byte in example.text.utf8 { screen.write([byte]) }
      #expect(seen(screen) == example.lines)
    }

    @Test func `lines that scroll off are kept`() {
      var screen = ScreenModel(columns: 10, rows: 2)
      screen.write("1\r\n2\r\n3\r\n")
      #expect(screen.scrolledOff == ["1", "2"])
      #expect(screen.transcript == ["1", "2", "3"])
      #expect(screen.cursor == (1, 0))
    }

    @Test func `a narrower and a wider window cut and fill lines`() {
      var screen = ScreenModel(columns: 10, rows: 3)
      screen.write("abcdefghij\r\nx")
      screen.resize(columns: 4, rows: 3)
      #expect(screen.lines == ["abcd", "x", ""])
      screen.resize(columns: 6, rows: 3)
      screen.write("yz1234")
      #expect(screen.lines == ["abcd", "xyz123", "4"])
    }

    @Test func `a lower window keeps the line of the cursor`() {
      var screen = ScreenModel(columns: 10, rows: 4)
      screen.write("1\r\n2\r\n3")
      screen.resize(columns: 10, rows: 2)
      #expect(screen.lines == ["2", "3"])
      #expect(screen.scrolledOff == ["1"])
      screen.resize(columns: 10, rows: 3)
      screen.write("\r\n4")
      #expect(screen.lines == ["2", "3", "4"])
    }
  }
}
