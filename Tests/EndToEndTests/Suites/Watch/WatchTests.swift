import Foundation
import Glibc
import Testing

/// `httpfs status --watch`, the live view, in a terminal.
extension RealMounts {
  @Suite struct LiveViews {
    private static let length: Int64 = 4 << 20

    /// A mount of three files, one of them complete, and a window that shows it.
    private struct Scene {
      let sandbox: Sandbox
      let origin: OriginServer
      let mount: Mount
      let window: TmuxWindow
      /// The modes of the terminal before the view started.
      let modes: String

      init(columns: Int = 80, rows: Int = 24, environment: [String: String] = [:]) throws {
        sandbox = try Sandbox()
        origin = try OriginServer()
        mount = try sandbox.mount(urls: [
          origin.url("done.bin", length: LiveViews.length, seed: 1),
          origin.url("idle.bin", length: LiveViews.length, seed: 2),
          origin.url("x", length: LiveViews.length, seed: 3) + "\n out=文件 [1].iso",
        ])
        _ = try mount.sha256("done.bin")
        try mount.waitUntilClosed()
        window = try TmuxWindow(columns: columns, rows: rows, environment: environment)
        modes = try window.modes()
      }

      /// The mount point below the sandbox.
      var name: String { String(mount.mountpoint.dropFirst(sandbox.directory.count + 1)) }

      /// Starts the view, and waits until it shows the files.
      func watch() throws {
        let modes = ["before", "after"].map { "stty -g >\(sandbox.path($0))" }
        // A short path, so it is shown whole.
        try window.enter("cd \(sandbox.directory)")
        let command = "\(try Products.httpfs) status --watch \(name)"
        try window.enter("\(modes[0]); clear; \(command); echo code=$?; \(modes[1])")
        guard waitForLine("complete", "done.bin") else {
          throw HarnessError("no view: \(try window.lines().joined(separator: "\n"))")
        }
      }

      /// Whether the view has ended with `code` and restored the terminal.
      func isRestored(code: Int32) throws -> Bool {
        guard window.waitForScreen({ $0.contains("code=\(code)") }) else { return false }
        let isRestored = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
          let texts = ["before", "after"].map {
            try? String(contentsOfFile: sandbox.path($0), encoding: .utf8)
          }
          return try texts[0] != nil && texts[0] == texts[1] && window.modes() == modes
            && window.value(of: "#{alternate_on} #{cursor_flag} #{wrap_flag}") == "0 1 1"
        }
        return isRestored
      }

      /// Waits until a line of the view has all these texts.
      func waitForLine(_ parts: String..., within limit: Duration = .seconds(30)) -> Bool {
        window.waitForScreen(within: limit) { lines in
          lines.contains { line in parts.allSatisfy { line.contains($0) } }
        }
      }

      /// Selects the file of this name by a filter.
      func select(_ part: String) throws {
        if try window.lines().contains(where: { $0.contains("filter:") }) {
          try window.press("Escape")
          guard waitForLine("──", "1-3 of 3") else { throw HarnessError("the filter stays") }
        }
        try window.type("/\(part)")
        try window.press("Enter")
        guard waitForLine("──", "1-1 of 1", "filter: \(part)") else {
          throw HarnessError("not selected: \(try window.lines())")
        }
      }
    }

    /// The line with its variable parts replaced.
    private static func normalised(_ line: String, mount: String) -> String {
      var line = line
      for (pattern, replacement) in [
        (" +up [0-9mhs]+$", " up TIME"), (#"127\.0\.0\.1:\d+"#, "ORIGIN"), ("\"[^\"]*\"", "TAG"),
        (#"\d+ requests?"#, "N requests"), (#"[\d.]+ MiB fetched"#, "N MiB fetched"),
        ("^httpfs  \(mount) ", "httpfs  MOUNT "),
      ] {
        line = line.replacingOccurrences(
          of: pattern, with: replacement, options: .regularExpression)
      }
      return line
    }

    @Test func `the view at 80 × 24 shows what .status.json says`() throws {
      let scene = try Scene()
      try scene.watch()
      let lines = try scene.window.lines().map { Self.normalised($0, mount: scene.name) }
      let expected = """
        httpfs  MOUNT up TIME
        [██████████████████████████] 100%  4 MiB of 4 MiB
        3 files: 1 complete, 2 unknown  0 connections  N requests
         STATE       PROGRESS    %  SIZE   SPEED    ETA CON NAME
        >complete    [██████] 100%    4M       -      -   0 done.bin
         unknown                 ?     ?       -      -   0 idle.bin
         unknown                 ?     ?       -      -   0 文件 [1].iso









        ── 1-3 of 3 ── by activity ─────────────────────────────────────────────────────
        done.bin
        bytes    4 MiB of 4 MiB cached, N MiB fetched, N requests, 0 retries
        version  ETag TAG
        url      http://ORIGIN/data/done.bin?…


        q quit  ? help  / filter  s sort  a active  p pause  f prefetch  c cancel
        """
      #expect(lines.joined(separator: "\n") == expected)
      // .status.json agrees.
      let done = try scene.mount.status(of: "done.bin")
      #expect(done.state == "complete" && done.cachedByteCount == Self.length)
      #expect(try scene.mount.status().files.map(\.state) == ["complete", "unknown", "unknown"])
      try scene.window.type("q")
      #expect(try scene.isRestored(code: 0))
      // The previous content of the terminal is back, without any part of the view.
      #expect(try !scene.window.lines().contains { $0.contains("done.bin") })
    }

    @Test func `it follows a resize, down to a single line`() throws {
      let scene = try Scene()
      try scene.watch()
      for (columns, rows) in [(120, 40), (60, 15), (20, 5), (1, 1), (200, 50), (80, 24)] {
        try scene.window.resize(columns: columns, rows: rows)
        let isDrawn = scene.window.waitForScreen { lines in
          guard lines.count == rows else { return false }
          if rows >= 3, columns >= 20 { return lines.last?.hasPrefix("q quit") == true }
          return true
        }
        let lines = try scene.window.lines()
        #expect(isDrawn, "\(columns) × \(rows): \(lines)")
        if columns >= 60 {
          #expect(scene.waitForLine("complete", "100%", "done.bin"), "\(columns) × \(rows)")
          #expect(scene.waitForLine("unknown", "idle.bin"), "\(columns) × \(rows)")
        }
      }
      try scene.window.type("q")
      #expect(try scene.isRestored(code: 0))
    }

    @Test func `keys control the mount`() throws {
      let scene = try Scene()
      let odd = "文件 [1].iso"
      try scene.watch()
      try scene.select("idle")
      try scene.window.type("p")
      #expect(try scene.mount.waitForStatus(of: "idle.bin") { $0.state == "paused" })
      #expect(scene.waitForLine("paused", "idle.bin"))
      try scene.window.type("p")
      #expect(try scene.mount.waitForStatus(of: "idle.bin") { $0.state == "unknown" })
      #expect(scene.waitForLine("resume idle.bin: accepted"))
      try scene.window.type("f")
      #expect(try scene.mount.waitForStatus(of: "idle.bin") { $0.state == "complete" })
      #expect(scene.waitForLine("complete", "100%", "idle.bin"))
      try scene.window.type("i")
      #expect(try scene.mount.waitForStatus(of: "idle.bin") { $0.pinned })
      #expect(scene.waitForLine("version", "pinned"))
      // The view reports an impossible command.
      try scene.window.type("ey")
      #expect(scene.waitForLine("'idle.bin' is pinned: nothing is evicted"))
      try scene.window.type("i")
      #expect(try scene.mount.waitForStatus(of: "idle.bin") { !$0.pinned })
      try scene.window.type("e")
      #expect(scene.waitForLine("evict the cached bytes of idle.bin? y/n"))
      try scene.window.type("n")
      #expect(scene.waitForLine("nothing was evicted"))
      #expect(try scene.mount.status(of: "idle.bin").state == "complete")
      try scene.window.type("ey")
      #expect(try scene.mount.waitForStatus(of: "idle.bin") { $0.cachedByteCount == 0 })
      // Wildcards and wide characters in a name are literal.
      try scene.select("[1]")
      try scene.window.type("f")
      #expect(try scene.mount.waitForStatus(of: odd) { $0.state == "complete" })
      #expect(scene.waitForLine("complete", "100%", odd))
      #expect(try scene.mount.status(of: "idle.bin").cachedByteCount == 0)
      try scene.window.type("?")
      #expect(scene.waitForLine("Any key goes back."))
      try scene.window.type(" ")
      try scene.window.press("Escape")
      #expect(scene.waitForLine("──", "1-3 of 3"))
      try scene.window.type("P")
      #expect(try scene.mount.waitForStatus(of: "idle.bin") { $0.state == "paused" })
      try scene.window.type("ss")
      #expect(scene.waitForLine("by size"))
      try scene.window.press("C-c")
      #expect(try scene.isRestored(code: 0))
    }

    @Test func `a download moves, and says why a read waits`() throws {
      let scene = try Scene()
      try scene.origin.control("*idle.bin", ["rate": "65536"])
      let reader = try scene.sandbox.start(["sha256sum", scene.mount.path("idle.bin")])
      try scene.watch()
      #expect(scene.waitForLine(">downloading", "K/s", "idle.bin"))
      #expect(scene.waitForLine("waiting ", "iB at ", " for "))
      #expect(scene.waitForLine("3 files: ", " read"))
      var percentages: [Int] = []
      let hasMoved = scene.window.waitForScreen { lines in
        for line in lines where line.contains("idle.bin") && line.contains("%") {
          let word = line.split(separator: " ").first { $0.hasSuffix("%") }
          if let percent = word.flatMap({ Int($0.dropLast()) }), percent != percentages.last {
            percentages.append(percent)
          }
        }
        return percentages.count >= 3
      }
      #expect(hasMoved, "\(percentages)")
      #expect(percentages == percentages.sorted())
      reader.kill()
      try scene.window.type("q")
      #expect(try scene.isRestored(code: 0))
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP])
    func `a signal ends it, and the terminal is as before`(signal: CInt) throws {
      let scene = try Scene()
      try scene.watch()
      let tty = try scene.window.value(of: "#{pane_tty}").dropFirst("/dev/".count)
      let processes = try output(of: ["ps", "-t", String(tty), "-o", "pid=,args="])
      let line = try #require(
        processes.split(separator: "\n").first { $0.contains("status --watch") })
      let processID = try #require(line.split(separator: " ").first.flatMap { pid_t($0) })
      kill(processID, signal)
      #expect(try scene.isRestored(code: 128 + signal))
    }

    @Test func `Ctrl-Z stops it, and it goes on in the foreground`() throws {
      let scene = try Scene()
      try scene.watch()
      try scene.window.press("C-z")
      #expect(scene.waitForLine("Stopped"))
      #expect(try scene.window.value(of: "#{alternate_on} #{cursor_flag}") == "0 1")
      #expect(try scene.window.modes() == scene.modes)
      try scene.window.enter("fg")
      #expect(scene.waitForLine("complete", "done.bin"))
      try scene.window.type("?")
      #expect(scene.waitForLine("Any key goes back."))
      try scene.window.type("qq")
      #expect(scene.window.waitForScreen { !$0.contains { $0.contains("done.bin") } })
      #expect(Deadline(after: .seconds(10)).wait { (try? scene.window.modes()) == scene.modes })
    }

    @Test func `an unmount ends it with a message`() throws {
      let scene = try Scene()
      try scene.watch()
      // The view itself may be reading the status at that moment.
      let isUnmounted = try Deadline(after: .seconds(20)).wait(every: .milliseconds(50)) {
        try run(["fusermount3", "-u", scene.mount.mountpoint]).succeeded
      }
      #expect(isUnmounted)
      #expect(try scene.isRestored(code: 0))
      let message = "httpfs: '\(scene.name)' is no longer mounted"
      #expect(try scene.window.lines().joined().contains(message))
    }

    @Test func `a mount that hangs does not hang it`() throws {
      let scene = try Scene()
      try scene.watch()
      scene.mount.process.signal(SIGSTOP)
      defer { scene.mount.process.signal(SIGCONT) }
      #expect(scene.waitForLine("the mount does not answer for 3 s"))
      try scene.window.type("?")
      #expect(scene.waitForLine("Any key goes back.", within: .seconds(10)))
      try scene.window.type(" ")
      scene.mount.process.signal(SIGCONT)
      #expect(scene.window.waitForScreen { !$0.contains { $0.contains("does not answer") } })
      #expect(scene.waitForLine("complete", "done.bin"))
      scene.mount.process.signal(SIGSTOP)
      #expect(scene.waitForLine("the mount does not answer"))
      try scene.window.type("q")
      #expect(try scene.isRestored(code: 0))
    }

    @Test func `a pipe, and a terminal that can do nothing, get plain text`() throws {
      let scene = try Scene()
      let text = try shell(
        "timeout 4 \(try Products.httpfs) status --watch \(scene.mount.mountpoint) | head -8 || true"
      )
      #expect(text.contains("done.bin"))
      #expect(!text.contains("\u{1B}"))
      try scene.window.enter(
        "clear; TERM=dumb \(try Products.httpfs) status --watch \(scene.mount.mountpoint)")
      #expect(scene.waitForLine("3 files, 1 complete"))
      #expect(try scene.window.value(of: "#{alternate_on}") == "0")
      try scene.window.press("C-c")
    }

    @Test func `NO_COLOR and an ASCII locale are obeyed`() throws {
      let scene = try Scene(environment: ["NO_COLOR": "1", "LC_ALL": "C"])
      try scene.watch()
      let lines = try scene.window.lines()
      #expect(lines.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } }, "\(lines)")
      #expect(lines.contains { $0.contains("?? [1].iso") })
      let styled = try scene.window.styledText()
      // Tmux itself writes 39, the default colour.
      #expect(
        styled.range(of: "\u{1B}\\[([0-9]+;)*3[0-7][;m]", options: .regularExpression) == nil)
      try scene.window.type("q")
      #expect(try scene.isRestored(code: 0))
    }

    @Test func `ten thousand files are watched`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: (0..<10_000).map { origin.url("file-\($0).bin", length: 1000, seed: UInt64($0)) })
      let window = try TmuxWindow()
      try window.enter("\(try Products.httpfs) status --watch \(mount.mountpoint); echo code=$?")
      #expect(window.waitForScreen { $0.contains { $0.contains("file-0.bin") } })
      try window.press("End")
      #expect(window.waitForScreen { $0.contains { $0.contains("9989-10000 of 10000") } })
      try window.type("/FILE-777")
      #expect(window.waitForScreen { $0.contains { $0.contains("of 11 ") } })
      try window.press("Enter")
      try window.type("q")
      #expect(window.waitForScreen { $0.contains("code=0") })
    }
  }
}
