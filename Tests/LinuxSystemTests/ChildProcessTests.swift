import Glibc
import LinuxSystem
import Testing

@Suite struct ChildProcessTests {
  private func start(_ script: String) throws -> ChildProcess {
    var program = ChildProgram(.path("/bin/sh"), ["sh", "-c", script])
    program.group = .own
    // The threads of tests may have signals blocked.
    program.signals = .unblocked(resetting: [SIGTERM])
    return try program.start()
  }

  @Test func `an ending tells codes and signals apart`() throws {
    let exited = try start("exit 3").waitForEnd()
    #expect(exited == .exited(3))
    #expect(exited.exitCode == 3)
    let killed = try start("kill -TERM $$").waitForEnd()
    #expect(killed == .signalled(SIGTERM))
    #expect(killed.exitCode == 128 + SIGTERM)
  }

  @Test func `an ending is remembered`() throws {
    let child = try start("exit 7")
    #expect(try child.waitForEnd() == .exited(7))
    #expect(try child.endingNow() == .exited(7))
    #expect(try child.waitForEnd() == .exited(7))
  }

  @Test func `a running process has no ending and can be killed`() throws {
    let child = try start("exec sleep 600")
    #expect(try child.endingNow() == nil)
    child.waitForEnd(atMost: .milliseconds(20))
    #expect(try child.endingNow() == nil)
    child.kill()
    #expect(try child.waitForEnd() == .signalled(SIGKILL))
    // Another process may have its number by now.
    child.kill()
    child.killGroup()
  }

  @Test func `a group dies together`() throws {
    var pipe = try ChildPipe()
    var program = ChildProgram(.path("/bin/sh"), ["sh", "-c", "sleep 600 & echo started; wait"])
    program.group = .own
    program.output = .copy(of: pipe.writeEnd)
    let child = try program.start()
    pipe.closeWriteEnd()
    var line = [UInt8](repeating: 0, count: 8)
    #expect(read(pipe.readEnd, &line, line.count) == 8)
    child.killGroup()
    #expect(try child.waitForEnd() == .signalled(SIGKILL))
    // The output ends when the last process that holds the other end is gone.
    #expect(try StreamCalls.contents(of: pipe.readEnd).isEmpty)
  }

  @Test func `waiting for a limited time ends with the process`() throws {
    let child = try start("exit 0")
    let began = ContinuousClock.now
    child.waitForEnd(atMost: .seconds(60))
    #expect(ContinuousClock.now - began < .seconds(50))
    #expect(try child.endingNow() == .exited(0))
  }

  @Test func `a process that was waited for elsewhere is an error`() throws {
    let child = try start("exit 0")
    var status: Int32 = 0
    while waitpid(child.processID, &status, 0) < 0, errno == EINTR {}
    #expect(throws: ErrorNumber(rawValue: ECHILD)) { try child.waitForEnd() }
    child.waitForEnd(atMost: .seconds(60))
  }
}
