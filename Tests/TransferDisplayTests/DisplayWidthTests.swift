import Testing
import TextFormat

@Suite struct DisplayWidthTests {
  /// The widths of `wcwidth`, and of terminals that join emoji.
  @Test(
    arguments: [
      ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("e\u{301}\u{302}\u{303}", 1), ("文件", 4),
      ("カナ", 4), ("ｶﾅ", 2), ("한글", 4), ("ᄒ\u{1161}\u{11AB}", 2), ("ｆ", 2), ("。", 2), ("🎉", 2),
      ("🇩🇪", 2), ("❤\u{FE0F}", 2), ("❤", 1), ("1\u{FE0F}\u{20E3}", 2), ("\u{200B}", 0),
      ("…", 1), ("█▏", 2), ("\u{AD}", 1), ("עברית", 5), ("ไม้", 2), ("\u{1FAE8}", 2), ("𠀀", 2),
    ])
  func widthsAreThoseOfTerminals(text: String, width: Int) {
    #expect(displayWidth(text) == width)
  }

  /// Terminals that do not join them show each part.
  @Test func joinedEmojiCountWithAllTheirParts() {
    #expect(displayWidth("👨‍👩‍👧") == 6)
    #expect(displayWidth("👍🏽") == 4)
    #expect(displayWidth("❤\u{FE0F}\u{200D}🔥") == 4)
    #expect(columnCounts(of: "👨‍👩‍👧") == [2, 2, 2])
  }

  @Test func whatDisturbsATerminalIsMadeVisible() {
    #expect(
      displayable("a\u{1B}[2J\u{9B}b\u{202E}c\r\n") == #"a\u{1B}[2J\u{9B}b\u{202E}c\u{D}\u{A}"#)
    #expect(displayable("文件 é.iso") == "文件 é.iso")
    #expect(displayable("文件 é\n.iso", isUTF8: false) == #"?? ?\u{A}.iso"#)
  }
}
