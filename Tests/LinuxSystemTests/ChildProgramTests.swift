import Glibc
import LinuxSystem
import Testing

@Suite struct ChildProgramTests {
  /// Runs a shell script, and returns its standard output.
  private func output(
    of script: String, _ change: (inout ChildProgram) -> Void = { _ in }
  ) throws -> String {
    try output(of: ChildProgram(.path("/bin/sh"), ["sh", "-c", script]), change)
  }

  private func output(
    of program: ChildProgram, _ change: (inout ChildProgram) -> Void
  ) throws -> String {
    var pipe = try ChildPipe()
    var program = program
    program.output = .copy(of: pipe.writeEnd)
    change(&program)
    let child = try program.start()
    pipe.closeWriteEnd()
    let bytes = try StreamCalls.contents(of: pipe.readEnd)
    #expect(try child.waitForEnd() == .exited(0))
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A field of /proc/PID/stat (proc(5)).
  private enum Field: Int {
    case group = 5
    case session
  }

  /// The child's process number and a number of its entry in /proc; the name of `sh` has no space.
  private func numbers(
    _ field: Field, _ change: (inout ChildProgram) -> Void = { _ in }
  ) throws -> (process: Int32, value: Int32) {
    let text = try output(of: "set -- $(cat /proc/$$/stat); echo $$ $\(field.rawValue)", change)
    let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }
    try #require(numbers.count == 2)
    return (numbers[0], numbers[1])
  }

  @Test func `a program is a path or a name in PATH`() throws {
    for executable in [ChildProgram.Executable.path("/bin/true"), .named("true")] {
      let child = try ChildProgram(executable, ["true"]).start()
      #expect(try child.waitForEnd() == .exited(0))
    }
  }

  @Test func `a program that does not exist is an error`() {
    for executable in [ChildProgram.Executable.path("/none/such"), .named("none-such")] {
      #expect(throws: ErrorNumber(rawValue: ENOENT)) {
        _ = try ChildProgram(executable, ["none"]).start()
      }
    }
  }

  @Test func `words arrive as they are`() throws {
    var pipe = try ChildPipe()
    var program = ChildProgram(.named("printf"), ["printf", "%s|", "a b", "", "*", "ä"])
    program.output = .copy(of: pipe.writeEnd)
    let child = try program.start()
    pipe.closeWriteEnd()
    #expect(try StreamCalls.contents(of: pipe.readEnd) == Array("a b||*|ä|".utf8))
    #expect(try child.waitForEnd() == .exited(0))
  }

  @Test func `variables are added and replaced, and the others are kept`() throws {
    let text = try output(of: #"echo "$HOME|$LC_ALL|$ADDED""#) {
      $0.variables = [("LC_ALL", "C"), ("ADDED", "a=b")]
    }
    let home = getenv("HOME").map { String(cString: $0) } ?? ""
    #expect(text == "\(home)|C|a=b\n")
    let count = try output(of: "tr '\\0' '\\n' < /proc/$$/environ | grep -c '^PATH='") {
      $0.variables = [("PATH", "/usr/bin:/bin")]
    }
    #expect(count == "1\n")
  }

  @Test func `standard descriptors are null, copies or those of this process`() throws {
    let null = try output(of: "readlink /proc/$$/fd/0 /proc/$$/fd/2") {
      $0.input = .null
      $0.errorOutput = .null
    }
    #expect(null == "/dev/null\n/dev/null\n")
    let both = try output(of: "echo out; echo error >&2") { $0.errorOutput = $0.output }
    #expect(both == "out\nerror\n")

    var input = try ChildPipe()
    try StreamCalls.write(Array("typed".utf8), to: input.writeEnd)
    input.closeWriteEnd()
    let end = input.readEnd
    #expect(try output(of: "cat") { $0.input = .copy(of: end) } == "typed")
  }

  @Test func `other descriptors can be closed`() throws {
    // Without the close-on-exec flag, as some libraries open them.
    let leaked = open("/dev/null", O_RDONLY)
    defer { close(leaked) }
    let script = "[ -e /proc/$$/fd/\(leaked) ] && echo open || echo closed"
    #expect(try output(of: script) == "open\n")
    #expect(try output(of: script) { $0.otherDescriptors = .closed } == "closed\n")
    #expect(try ProcessCalls.openDescriptors().contains(leaked))
  }

  @Test func `a child inherits no end of a pipe`() throws {
    let pipe = try ChildPipe()
    let ends = "\(pipe.readEnd) \(pipe.writeEnd)"
    let script = "for end in \(ends); do readlink /proc/$$/fd/$end; done 2> /dev/null; true"
    let inherited = try output(of: script)
    var text = [CChar](repeating: 0, count: 256)
    let count = readlink("/proc/self/fd/\(pipe.readEnd)", &text, text.count)
    try #require(count > 0)
    let name = String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    #expect(!inherited.contains(name))
  }

  @Test func `a group and a session can be the child's own`() throws {
    #expect(try numbers(.group).value == getpgrp())
    let group = try numbers(.group) { $0.group = .own }
    #expect(group.value == group.process)
    #expect(try numbers(.session) { $0.group = .own }.value == getsid(0))
    let session = try numbers(.session) { $0.group = .ownSession }
    #expect(session.value == session.process)
  }

  @Test func `blocked signals are unblocked, and ignored ones reset`() throws {
    // No other code uses this signal.
    let number: Int32 = 40
    var blocked = sigset_t()
    var before = sigset_t()
    sigemptyset(&blocked)
    sigaddset(&blocked, number)
    pthread_sigmask(SIG_BLOCK, &blocked, &before)
    let action = signal(number, SIG_IGN)
    defer {
      signal(number, action)
      pthread_sigmask(SIG_SETMASK, &before, nil)
    }
    let bit: UInt64 = 1 << (number - 1)
    #expect(try signals("SigBlk") & bit != 0)
    #expect(try signals("SigIgn") & bit != 0)
    #expect(try signals("SigBlk") { $0.signals = .unblocked(resetting: []) } == 0)
    #expect(try signals("SigIgn") { $0.signals = .unblocked(resetting: []) } & bit != 0)
    #expect(try signals("SigIgn") { $0.signals = .unblocked(resetting: [number]) } & bit == 0)
  }

  /// A set of signals of the child; a shell would change them.
  private func signals(
    _ set: String, _ change: (inout ChildProgram) -> Void = { _ in }
  ) throws -> UInt64 {
    let program = ChildProgram(.named("grep"), ["grep", "^\(set):", "/proc/self/status"])
    let text = try output(of: program, change)
    return try #require(
      text.split(whereSeparator: \.isWhitespace).last.flatMap { UInt64($0, radix: 16) })
  }
}
