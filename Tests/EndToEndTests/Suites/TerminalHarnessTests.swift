import Glibc
import Testing

/// The pseudo-terminal in which the tests watch progress displays.
extension RealMounts {
  @Suite struct TerminalHarness {
    @Test func `a command sees a terminal of the given size`() throws {
      let terminal = try Terminal(
        ["sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size; tty </dev/tty; exit 7"],
        columns: 47, rows: 11)
      #expect(terminal.wait(within: .seconds(10)) == .exited(7))
      #expect(terminal.screen.lines.first == "11 47")
      // The terminal is also its controlling terminal.
      #expect(terminal.screen.lines[1].hasPrefix("/dev/"))
    }

    @Test func `Ctrl-C interrupts the command and what it has started`() throws {
      let terminal = try Terminal(["sh", "-c", "echo ready; sleep 60; echo not interrupted"])
      #expect(terminal.waitForOutput("ready"))
      try terminal.typeControlC()
      #expect(terminal.wait(within: .seconds(10)) == .signalled(SIGINT))
      #expect(!terminal.output.contains("not interrupted"))
      #expect(terminal.output.contains("^C"))
    }

    @Test func `a command that catches SIGINT goes on`() throws {
      let terminal = try Terminal(
        ["bash", "-c", "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.01; done"])
      #expect(terminal.waitForOutput("ready"))
      try terminal.typeControlC()
      #expect(terminal.wait(within: .seconds(10)) == .exited(3))
      #expect(terminal.output.contains("caught"))
    }

    @Test func `a resize reaches the command as a signal and as a size`() throws {
      let terminal = try Terminal(
        ["bash", "-c", "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done"])
      #expect(terminal.waitForOutput("ready"))
      try terminal.resize(columns: 31, rows: 5)
      #expect(terminal.wait(within: .seconds(10)) == .exited(0))
      #expect(terminal.screen.transcript == ["ready", "5 31"])
      #expect(terminal.screen.columns == 31)
    }

    @Test func `the output is whole however much it is and whenever it is read`() throws {
      let terminal = try Terminal(["seq", "200000"])
      #expect(terminal.wait(within: .seconds(30)) == .exited(0))
      #expect(terminal.output == (1...200_000).map { "\($0)\r\n" }.joined())
    }

    @Test func `what is typed is read by the command`() throws {
      let terminal = try Terminal(["sh", "-c", "read line; echo \"got $line\""])
      try terminal.type("hello\r")
      #expect(terminal.wait(within: .seconds(10)) == .exited(0))
      #expect(terminal.screen.transcript == ["hello", "got hello"])
    }

    @Test func `the output is there although a process that was left behind goes on`() throws {
      let terminal = try Terminal(["sh", "-c", "setsid sleep 5 & echo started"])
      #expect(terminal.wait(within: .seconds(3)) == .exited(0))
      #expect(terminal.screen.transcript == ["started"])
    }

    @Test func `a command ends with its terminal`() throws {
      var terminal: Terminal? = try Terminal(
        ["sh", "-c", "trap '' HUP INT TERM; echo ready; sleep 60; sleep 60"])
      #expect(terminal?.waitForOutput("ready") == true)
      let processID = try #require(terminal?.process.processID)
      #expect(kill(processID, 0) == 0)
      terminal = nil
      // The command's child still exists until init has reaped it.
      #expect(Deadline(after: .seconds(5)).wait { kill(-processID, 0) == -1 && errno == ESRCH })
    }
  }
}
