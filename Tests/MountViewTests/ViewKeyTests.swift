import MountControl
import MountStatus
import MountView
import Testing

@Suite struct ViewKeyTests {
  @Test func keysSelectFilesAndScroll() {
    let files = (0..<100).map { FileStatus(name: "f\($0)", url: "u", state: .idle) }
    var view = sampleView(
      of: StatusReport(mountpoint: "/m", uptimeSeconds: 0, files: files))
    #expect(view.names().first == ">f0")
    #expect(view.names().count == 12)
    for key in [Key.down, .character("j"), .up] { _ = view.press(key) }
    #expect(view.names()[1] == ">f1")
    _ = view.press(.pageDown)
    #expect(view.names().last == ">f13")
    _ = view.press(.end)
    #expect(view.names().last == ">f99")
    #expect(view.names().count == 12)
    _ = view.press(.pageDown)
    #expect(view.names().last == ">f99")
    _ = view.press(.pageUp)
    #expect(view.names().first == ">f87")
    _ = view.press(.home)
    #expect(view.names().first == ">f0")
    _ = view.press(.up)
    #expect(view.names().first == ">f0")
    // A screen that shrinks keeps the selected file visible.
    view.type("jjjjjjjj")
    #expect(view.names(rows: 15).contains(">f8"))
  }

  @Test func theSelectionFollowsItsFile() {
    var view = sampleView()
    #expect(view.names() == [">stuck.bin", "images/big.iso", "gone.bin", "done.bin", "new.txt"])
    view.type("j")
    var changed = sample
    changed.files[1].state = .complete
    changed.files[1].connections = 0
    view.take(changed)
    #expect(view.names() == ["stuck.bin", "gone.bin", "done.bin", ">images/big.iso", "new.txt"])
    // The next file takes the place of a removed one.
    changed.files.remove(at: 1)
    view.take(changed)
    #expect(view.names() == ["stuck.bin", "gone.bin", "done.bin", ">new.txt"])
    changed.files = []
    view.take(changed)
    #expect(view.text().contains("  no files"))
    #expect(view.type("pfe").isEmpty)
    // Without a moved selection, the first file is selected.
    view = sampleView()
    changed = sample
    changed.files[3].state = .idle
    changed.files[3].waitingReads = []
    changed.files[3].connections = 0
    view.take(changed)
    #expect(view.names().first == ">images/big.iso")
  }

  @Test func filesAreSorted() {
    var view = sampleView()
    view.type("s")
    #expect(view.names() == [">done.bin", "gone.bin", "images/big.iso", "new.txt", "stuck.bin"])
    view.type("s")
    #expect(view.names().prefix(3) == [">stuck.bin", "images/big.iso", "done.bin"])
    view.type("s")
    #expect(view.names().prefix(2) == [">done.bin", "images/big.iso"])
    view.type("s")
    #expect(view.names().first == ">stuck.bin")
  }

  @Test func onlyNamesWithATextAreShown() {
    var view = sampleView()
    view.type("/BIN")
    #expect(view.names() == [">stuck.bin", "gone.bin", "done.bin"])
    #expect(view.text().last == "filter: BIN")
    // Letters are text here, not commands.
    #expect(view.type("q").isEmpty)
    #expect(view.names().count == 1)
    #expect(view.text().contains { $0.contains("no file is shown") })
    view.type("", then: .backspace, .enter)
    #expect(view.names().count == 3)
    #expect(view.text().contains { $0.hasPrefix("──") && $0.contains("filter: BIN") })
    view.type("/x", then: .escape)
    #expect(view.names().count == 3)
    view.type("", then: .escape)
    #expect(view.names().count == 5)
    view.type("a")
    #expect(view.names() == [">stuck.bin", "images/big.iso"])
  }

  @Test func keysAskForWhatTheySay() {
    var view = sampleView()
    view.type("j")
    let name = "images/big.iso"
    #expect(view.type("p") == [.control(.file(.pause, name: name))])
    view.finish(.file(.pause, name: name), failure: nil)
    #expect(view.text().last == "pause images/big.iso: accepted")
    // The file may continue because of a reader, although it is paused.
    #expect(view.type("p") == [.control(.file(.resume, name: name))])
    view.finish(.file(.resume, name: name), failure: "no such file")
    #expect(view.text().last == "no such file")
    #expect(view.type("p") == [.control(.file(.resume, name: name))])
    #expect(view.type("f") == [.control(.file(.prefetch, name: name))])
    #expect(view.type("c") == [.control(.file(.cancel, name: name))])
    #expect(view.type("v") == [.control(.file(.verify, name: name))])
    #expect(view.type("r") == [.control(.file(.refresh, name: name))])
    #expect(view.type("R") == [.control(.file(.refresh, name: nil))])
    #expect(view.type("i") == [.control(.file(.pin, name: name))])
    view.type("jj")
    #expect(view.type("i") == [.control(.file(.unpin, name: "done.bin"))])
    #expect(view.type("q") == [.quit])
    #expect(view.press(.control("c")) == .quit)
    #expect(view.press(.control("z")) == .suspend)
    #expect(view.press(.control("l")) == .redraw)
  }

  @Test func evictionIsAskedFor() {
    var view = sampleView()
    #expect(view.type("e").isEmpty)
    #expect(view.text().last == "evict the cached bytes of stuck.bin? y/n")
    #expect(view.type("n").isEmpty)
    #expect(view.text().last == "nothing was evicted")
    // Not the file that has taken its place meanwhile.
    view.type("e")
    var changed = sample
    changed.files.remove(at: 3)
    view.take(changed)
    #expect(view.type("y") == [.control(.file(.evict, name: "stuck.bin"))])
  }

  @Test func valuesAreTypedAndChecked() {
    var view = sampleView()
    #expect(view.type("n8", then: .enter) == [.control(.connections("8"))])
    #expect(view.type("n65", then: .enter).isEmpty)
    #expect(view.text().last == "'65' is neither a number from 1 to 64 nor auto")
    #expect(view.type("l10M", then: .enter) == [.control(.rateLimit("10M"))])
    #expect(view.type("lfast", then: .enter).isEmpty)
    #expect(view.text().last?.hasPrefix("'fast' is not a byte count") == true)
    #expect(view.type("l1", then: .control("u"), .enter).isEmpty)
    #expect(view.type("l1", then: .escape).isEmpty)
    #expect(view.type("q") == [.quit])
    // The line editor has a bound, and shows its end.
    view.type("n" + String(repeating: "9", count: 10_000) + "1")
    let last = view.screen(columns: 60, rows: 24, isUTF8: true)
    #expect(last.lines.last?.text.hasSuffix("999") == true)
    #expect(last.cursor?.row == 23)
  }

  @Test func helpIsShownUntilAKey() {
    var view = sampleView()
    view.type("?")
    let lines = view.text()
    #expect(lines.first == "Keys of httpfs status --watch")
    #expect(lines.contains { $0.contains("evict the file's cached bytes") })
    #expect(lines.last { !$0.isEmpty } == "Any key goes back.")
    #expect(lines.allSatisfy { !$0.contains("…") })
    #expect(view.type("q").isEmpty)
    #expect(view.text().first?.hasPrefix("httpfs") == true)
  }

  @Test(
    arguments: [
      (.file(.pause, name: "a b"), ["pause", "--", "/m", "a b"]),
      (.file(.evict, name: "-x"), ["evict", "--", "/m", "-x"]),
      // The name is literal.
      (.file(.pin, name: #"[a]*?\"#), ["pin", "--", "/m", #"\[a]\*\?\\"#]),
      (.file(.resume, name: nil), ["resume", "/m"]),
      (.connections("auto"), ["connections", "/m", "auto"]),
      (.rateLimit("0"), ["rate-limit", "/m", "0"]),
    ] as [(ControlRequest, [String])])
  func aRequestIsACommand(request: ControlRequest, arguments: [String]) {
    #expect(request.arguments(mountpoint: "/m") == arguments)
  }
}
