import Foundation
import Glibc
import Testing

/// Signals to `httpfs get`: no bytes are lost, and the message tells how to continue.
extension RealMounts {
  @Suite struct GetInterruption {
    private static let length: Int64 = 24 << 20

    private func url(_ origin: OriginServer) -> String {
      origin.url("a.bin", length: Self.length, seed: 11)
    }

    @Test func `Ctrl-C keeps the partial file, and the same command fetches the rest alone`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["total-rate": "4m"])
      let terminal = try work.terminal("get", url(origin))
      #expect(work.waitForPart(of: "a.bin"))
      pause(for: .seconds(2))
      let time = try elapsed {
        try terminal.typeControlC()
        #expect(terminal.wait(within: .seconds(30)) == .exited(130))
      }
      #expect(time < .seconds(2))
      #expect(work.names == ["a.bin.httpfs-part", "a.bin.httpfs-part.record"])
      let transcript = terminal.screen.transcript
      #expect(transcript.contains { $0.contains("a.bin: cancelled at ") }, "\(transcript)")
      let advice = try #require(transcript.last)
      #expect(advice == "httpfs: interrupted; run the same command again to resume")
      #expect(!transcript.contains { $0.contains("ETA") }, "\(transcript)")

      let sent = try origin.requests().bodyByteCount
      #expect(sent > 4 << 20)
      try origin.clearLog()
      try origin.clearControl()
      let second = try work.get(url(origin))
      #expect(second.succeeded, "\(second.error)")
      #expect(work.names == ["a.bin"])
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 11, byteCount: Self.length))
      // Bytes in flight at the moment of the signal may be sent twice.
      #expect(try origin.requests().bodyByteCount <= Self.length - sent + (4 << 20))
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func `a signal ends a command in a pipe, with what is there kept`(_ signal: CInt) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.holdEnds(ofLength: Self.length, ["total-rate": "4m"])
      let process = try work.start("get", url(origin))
      #expect(work.waitForPart(of: "a.bin"))
      process.signal(signal)
      #expect(process.wait(within: .seconds(30)) == .exited(128 + signal))
      #expect(process.standardError.contains("run the same command again"))
      try origin.clearControl()
      #expect(try work.get(url(origin)).succeeded)
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 11, byteCount: Self.length))
    }

    @Test func `--json tells of an interruption in its summary`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.holdEnds(ofLength: Self.length, ["total-rate": "4m"])
      let process = try work.start("get", "--json", url(origin))
      #expect(work.waitForPart(of: "a.bin"))
      process.signal(SIGINT)
      #expect(process.wait(within: .seconds(30)) == .exited(130))
      #expect(process.standardError.isEmpty)
      let last = try #require(process.standardOutput.split(separator: "\n").last)
      #expect(last.contains(#""event":"summary""#) && last.contains(#""cancelled":1"#), "\(last)")
    }

    @Test func `Ctrl-C ends at once while a server keeps silent`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["fault": "stall-head"])
      let terminal = try work.terminal("get", url(origin))
      #expect(terminal.waitForOutput("connecting"))
      let time = try elapsed {
        try terminal.typeControlC()
        #expect(terminal.wait(within: .seconds(30)) == .exited(130))
      }
      #expect(time < .seconds(2))
    }

    @Test func `two Ctrl-C in a row end at once too`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["fault": "stall", "fault-at": "1m"])
      let terminal = try work.terminal("get", "-x", "1", url(origin))
      #expect(work.waitForPart(of: "a.bin"))
      let time = try elapsed {
        try terminal.typeControlC()
        try terminal.typeControlC()
        #expect(terminal.wait(within: .seconds(30)) == .exited(130))
      }
      #expect(time < .seconds(2))
      try origin.clearControl()
      #expect(try work.get(url(origin)).succeeded)
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 11, byteCount: Self.length))
    }

    @Test func `Ctrl-C ends a copy to a pipe with the code of the signal`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["rate": "1m"])
      let process = try work.start("get", "-o", "-", url(origin))
      #expect(Deadline(after: .seconds(10)).wait { !process.standardOutput.isEmpty })
      process.signal(SIGINT)
      #expect(process.wait(within: .seconds(30)) == .exited(130))
    }

    @Test(arguments: [true, false])
    func `a second Ctrl-C ends at once what the first one could not, and else a second does`(
      isRepeated: Bool
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let pipe = work.path("pipe")
      #expect(mkfifo(pipe, 0o600) == 0)
      // A reader that reads nothing: the command hangs in a write.
      let reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
      defer { close(reader) }
      let command = try work.commandLine(["get", "-o", "-", url(origin)])
      let process = try work.sandbox.start(
        ["bash", "-c", "exec \(command.map(quoted).joined(separator: " ")) >\(quoted(pipe))"])
      // Fill the pipe, whatever its capacity, until it accepts no more bytes.
      var filled = CInt(0)
      var before = CInt(0)
      #expect(
        Deadline(after: .seconds(10)).wait(every: .milliseconds(300)) {
          defer { before = filled }
          return ioctl(reader, UInt(FIONREAD), &filled) == 0 && filled > 0 && filled == before
        })
      process.signal(SIGINT)
      if isRepeated { #expect(process.wait(within: .milliseconds(200)) == nil) }
      let time = elapsed {
        if isRepeated { process.signal(SIGINT) }
        #expect(process.wait(within: .seconds(30)) == .exited(130))
      }
      let limit = isRepeated ? Duration.milliseconds(700) : .seconds(3)
      #expect(time < limit)
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a signal ends a command that waits for a list or checksums`(_ signal: CInt) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      for arguments in Self.waiting {
        #expect(mkfifo(work.path("pipe"), 0o600) == 0)
        let process = try work.sandbox.start(
          try work.commandLine(["get", "--session", "todo"] + arguments + [url(origin)]),
          input: .pipe)
        pause(for: .seconds(1))
        process.signal(signal)
        // A shell shows it as 128 and the signal.
        #expect(process.wait(within: .seconds(1)) == .signalled(signal), "\(arguments)")
        #expect(work.names == ["pipe"])
        try FileManager.default.removeItem(atPath: work.path("pipe"))
      }
    }

    @Test func `--max-time ends a command that waits for a list or checksums`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      #expect(mkfifo(work.path("pipe"), 0o600) == 0)
      for arguments in Self.waiting {
        let process = try work.sandbox.start(
          try work.commandLine(
            ["get", "--session", "todo", "--max-time", "1"] + arguments + [url(origin)]),
          input: .pipe)
        #expect(process.wait(within: .seconds(10)) == .exited(2), "\(arguments)")
        #expect(process.standardError.contains("--max-time"), "\(process.standardError)")
        #expect(work.names == ["pipe"])
      }
    }

    /// The ways to wait for input before the first request.
    private static let waiting = [["-i", "-"], ["-i", "pipe"], ["--checksum-file", "pipe"]]

    @Test func `a list and checksums may come from pipes, also under a time limit`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let command = try work.commandLine(["get", "--max-time", "60", "-i"])
      let words = command.map(quoted).joined(separator: " ")
      let digest = Digest.ofContent(seed: 11, byteCount: Self.length)
      for list in ["<(sleep 1; echo \(quoted(url(origin))))", "/dev/stdin"] {
        let result = try EndToEndTests.run([
          "bash", "-c",
          "(sleep 1; echo \(quoted(url(origin)))) | \(words) \(list)"
            + " --checksum-file <(sleep 1; echo '\(digest)  a.bin')",
        ])
        #expect(result.succeeded, "\(result.error)")
        #expect(work.names == ["a.bin"])
        try FileManager.default.removeItem(atPath: work.path("a.bin"))
      }
    }

    @Test func `after kill -9 the same command goes on`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["total-rate": "8m"])
      let process = try work.start("get", "-x", "4", url(origin))
      #expect(work.waitForPart(of: "a.bin"))
      pause(for: .seconds(1))
      process.signal(SIGKILL)
      #expect(process.wait(within: .seconds(30)) == .signalled(SIGKILL))
      try origin.clearControl()
      let second = try work.get(url(origin))
      #expect(second.succeeded, "\(second.error)")
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 11, byteCount: Self.length))
      // A loss is bounded.
      #expect(try origin.requests().bodyByteCount <= Self.length + (16 << 20))
      #expect(second.error.contains("resum"), "\(second.error)")
    }

    @Test func `two commands do not write one file at a time`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["total-rate": "8m"])
      let first = try work.start("get", url(origin))
      #expect(work.waitForPart(of: "a.bin"))
      let second = try work.get(url(origin), within: .seconds(10))
      #expect(second.ending == .exited(9))
      #expect(second.error.contains("is being written by another transfer"), "\(second.error)")
      #expect(first.wait(within: .seconds(20)) == .exited(0))
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 11, byteCount: Self.length))
    }
  }
}
