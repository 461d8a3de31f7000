import Foundation
import Glibc
import Testing

/// `httpfs get` on a terminal: the display while it runs and after its end.
extension RealMounts {
  @Suite struct GetScreen {
    /// A URL whose transfer takes about `seconds` on one connection.
    private func slowURL(_ origin: OriginServer, _ name: String, seconds: Int = 3) -> String {
      origin.url(name, length: Int64(seconds) << 20, seed: 1, query: "rate=1m")
    }

    @Test func `there is one bar for each file and one in total`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let terminal = try work.terminal(
        "get", "-x", "1", slowURL(origin, "first.bin"), slowURL(origin, "second.bin"),
        slowURL(origin, "third.bin", seconds: 1), columns: 100)
      let hasBars = terminal.waitForScreen { screen in
        let lines = screen.lines.filter { !$0.isEmpty }
        return lines.count >= 4 && lines[0].hasPrefix("first.bin")
          && lines[1].hasPrefix("second.bin") && lines[2].hasPrefix("third.bin")
          && lines[3].hasPrefix("total 0/3")
          && lines.prefix(4).allSatisfy {
            $0.contains("%") && $0.contains("MiB/s") && $0.contains("ETA") && $0.contains("conn")
          }
      }
      #expect(hasBars, "\(terminal.screen.lines)")
      let third = terminal.waitForScreen { screen in
        screen.lines.contains { $0.hasPrefix("total 1/3") }
      }
      #expect(third)
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
      let transcript = terminal.screen.transcript
      #expect(transcript.count == 4, "\(transcript)")
      for name in ["first.bin", "second.bin", "third.bin"] {
        #expect(transcript.contains { $0.hasPrefix("\(name): ") && $0.contains(" in ") })
      }
      #expect(transcript.last?.hasPrefix("3 files finished, 7 MiB in ") == true)
    }

    @Test func `a single file has no line in total`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let terminal = try work.terminal("get", "-x", "1", slowURL(origin, "a.bin", seconds: 2))
      #expect(terminal.waitForScreen { $0.lines[0].hasPrefix("a.bin ") })
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
      #expect(!terminal.output.contains("total"))
      #expect(terminal.screen.transcript.count == 1)
    }

    @Test func `a failure stands out in the end, and its reason with it`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let terminal = try work.terminal(
        "get", slowURL(origin, "a.bin", seconds: 1),
        origin.url("gone.bin", length: 5, seed: 2, query: "status=404"))
      #expect(terminal.wait(within: .seconds(20)) == .exited(3))
      let transcript = terminal.screen.transcript
      #expect(transcript.contains { $0.hasPrefix("gone.bin: failed: HTTP 404") }, "\(transcript)")
      #expect(transcript.contains { $0.hasPrefix("1 file finished, 1 failed") }, "\(transcript)")
    }

    @Test func `it is redrawn ten times a second at most`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let urls = (0..<4).map { slowURL(origin, "\($0).bin", seconds: 3) }
      var ending: ChildProcess.Ending?
      var output = ""
      let time = try elapsed {
        let terminal = try work.terminal("get", "-x", "1", urls[0], urls[1], urls[2], urls[3])
        ending = terminal.wait(within: .seconds(20))
        output = terminal.output
      }
      #expect(ending == .exited(0))
      let redraws = output.split(separator: "\u{1B}[").filter { part in
        part.drop { $0.isNumber }.first == "A"
      }
      // Each of the four ends is drawn at once, and so is the end of all.
      #expect(Double(redraws.count) <= time.seconds * 10 + 5)
      #expect(redraws.count >= 10)
    }

    @Test(arguments: [20, 30, 3])
    func `a narrow window shows no line twice and wraps none`(_ columns: Int) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let terminal = try work.terminal(
        "get", "-x", "1", slowURL(origin, "a-name-that-is-longer-than-the-window.bin"),
        slowURL(origin, "b.bin"), columns: columns, rows: 10)
      var most = 0
      _ = Deadline(after: .milliseconds(1800)).wait(every: .milliseconds(20)) {
        let screen = terminal.screen
        most = max(most, screen.lines.filter { !$0.isEmpty }.count)
        #expect(screen.scrolledOff.isEmpty)
        return !terminal.process.isRunning
      }
      #expect(most == 3, "\(terminal.screen.lines)")
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
    }

    @Test func `wide characters and control characters of a name keep the lines apart`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let terminal = try work.terminal(
        "get", "-x", "1", slowURL(origin, "%E6%97%A5%E6%9C%AC%E8%AA%9E%1B%5B2J.bin"),
        slowURL(origin, "b.bin"), columns: 40, rows: 10)
      #expect(terminal.waitForScreen { $0.lines[0].contains("日本語") && $0.lines[0].contains("%") })
      #expect(terminal.screen.lines.filter { !$0.isEmpty }.count == 3)
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
      #expect(!terminal.output.contains("\u{1B}[2J"))
    }

    @Test func `a window of few lines shows as many files as fit`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let urls = (0..<6).map { slowURL(origin, "\($0).bin", seconds: 2) }
      let terminal = try Terminal(
        try work.commandLine(["get", "-x", "1", "-j", "6"] + urls), columns: 60, rows: 5)
      #expect(terminal.waitForScreen { $0.lines.contains { $0.hasPrefix("total 0/6") } })
      _ = Deadline(after: .seconds(1)).wait(every: .milliseconds(50)) {
        #expect(terminal.screen.scrolledOff.isEmpty)
        return false
      }
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
      let transcript = terminal.screen.transcript
      #expect(transcript.count == 7, "\(transcript)")
      #expect(!transcript.contains { $0.hasPrefix("total") || $0.hasPrefix("and ") })
    }

    @Test(arguments: [[100, 50], [50, 100], [80, 20], [80, 30, 120, 41]])
    func `a resize in the middle leaves nothing behind`(_ widths: [Int]) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let terminal = try work.terminal(
        "get", "-x", "1", slowURL(origin, "a.bin"), slowURL(origin, "b.bin"), columns: widths[0])
      #expect(terminal.waitForScreen { $0.lines.contains { $0.hasPrefix("total 0/2") } })
      for width in widths.dropFirst() {
        pause(for: .milliseconds(500))
        try terminal.resize(columns: width, rows: 24)
      }
      pause(for: .milliseconds(400))
      let bars = terminal.screen.lines.filter { !$0.isEmpty }
      #expect(bars.count == 3, "\(bars)")
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
      let text = terminal.screen.transcript.joined(separator: "\n")
      #expect(!text.contains("ETA") && !text.contains("total"), "\(text)")
      #expect(text.components(separatedBy: "a.bin:").count == 2, "\(text)")
      #expect(text.components(separatedBy: "b.bin:").count == 2, "\(text)")
    }

    @Test func `TERM=dumb gets plain lines`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let terminal = try Terminal(
        try work.commandLine(["get", slowURL(origin, "a.bin", seconds: 1)]),
        environment: ["TERM": "dumb"])
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
      #expect(!terminal.output.contains("\u{1B}"))
      #expect(terminal.output.contains("a.bin: "))
    }

    @Test func `a terminal without UTF-8 gets ASCII alone`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let terminal = try Terminal(
        try work.commandLine(["get", slowURL(origin, "%E6%97%A5.bin", seconds: 1)]),
        environment: ["LC_ALL": "C"])
      #expect(terminal.wait(within: .seconds(20)) == .exited(0))
      #expect(terminal.output.utf8.allSatisfy { $0 < 0x80 })
    }
  }
}
