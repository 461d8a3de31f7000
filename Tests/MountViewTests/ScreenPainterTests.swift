import MountView
import Testing

@Suite struct ScreenPainterTests {
  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  @Test func onlyWhatHasChangedIsDrawn() {
    var view = sampleView()
    var painter = ScreenPainter(color: true)
    let first = text(painter.draw(view.screen(columns: 80, rows: 24, isUTF8: true)))
    #expect(first.contains("\u{1B}[2J"))
    for row in 1...24 { #expect(first.contains("\u{1B}[\(row);1H")) }
    #expect(painter.draw(view.screen(columns: 80, rows: 24, isUTF8: true)).isEmpty)
    view.type("s")
    view.clearNotice()
    let second = text(painter.draw(view.screen(columns: 80, rows: 24, isUTF8: true)))
    #expect(!second.contains("\u{1B}[2J"))
    #expect(!second.contains("\u{1B}[1;1H"))
    #expect(second.contains("by name"))
    // After a change of size, or if another program has used the screen, all of it is redrawn.
    #expect(
      text(painter.draw(view.screen(columns: 80, rows: 25, isUTF8: true))).contains("\u{1B}[2J"))
    painter.forget()
    #expect(
      text(painter.draw(view.screen(columns: 80, rows: 25, isUTF8: true))).contains("\u{1B}[2J"))
  }

  @Test func coloursAreShownOnlyWhereTheyAreWanted() {
    var view = sampleView()
    let screen = view.screen(columns: 80, rows: 24, isUTF8: true)
    var colored = ScreenPainter(color: true)
    var plain = ScreenPainter(color: false)
    #expect(text(colored.draw(screen)).contains("\u{1B}[32m"))
    let bytes = text(plain.draw(screen))
    for color in 30...37 { #expect(!bytes.contains("\(color)m")) }
    #expect(bytes.contains("\u{1B}[7m"))
  }

  @Test func theCursorIsShownOnlyWhereTextIsTyped() {
    var view = sampleView()
    var painter = ScreenPainter(color: false)
    #expect(
      !text(painter.draw(view.screen(columns: 80, rows: 24, isUTF8: true))).contains("\u{1B}[?25h"))
    view.type("/abc")
    let bytes = text(painter.draw(view.screen(columns: 80, rows: 24, isUTF8: true)))
    #expect(bytes.hasSuffix("\u{1B}[24;12H\u{1B}[?25h"))
  }
}
