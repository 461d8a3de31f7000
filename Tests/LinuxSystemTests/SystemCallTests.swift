import Glibc
import LinuxSystem
import Testing

@Suite struct SystemCallTests {
  @Test func `an error number has the usual text`() {
    #expect("\(ErrorNumber(rawValue: ENOENT))" == "No such file or directory")
    errno = EACCES
    let last = ErrorNumber.last
    #expect(last == ErrorNumber(rawValue: EACCES))
  }

  @Test func `contents are read to the end, up to a limit`() throws {
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
    let file = try SystemCalls.createMemoryFile(label: "test")
    try StreamCalls.write(bytes, to: file.rawValue)
    let path = "/proc/self/fd/\(file.rawValue)"
    #expect(try StreamCalls.contents(ofFile: path) == bytes)
    #expect(try StreamCalls.contents(ofFile: path, maximumByteCount: 1000) == bytes)
    #expect(throws: ErrorNumber(rawValue: EFBIG)) {
      try StreamCalls.contents(ofFile: path, maximumByteCount: 999)
    }
    #expect(throws: ErrorNumber(rawValue: ENOENT)) {
      try StreamCalls.contents(ofFile: "/none/such")
    }
    #expect(throws: ErrorNumber(rawValue: EISDIR)) { try StreamCalls.contents(ofFile: "/") }
  }

  @Test func `a file in memory has no direct reads, whatever its open says`() throws {
    let file = try SystemCalls.createMemoryFile(label: "test")
    #expect(try SystemCalls.reopenDirectly(file) == nil)
  }

  @Test func `more than a pipe holds is written in pieces`() throws {
    var input = try ChildPipe()
    var output = try ChildPipe()
    var program = ChildProgram(.named("wc"), ["wc", "-c"])
    program.input = .copy(of: input.readEnd)
    program.output = .copy(of: output.writeEnd)
    let child = try program.start()
    output.closeWriteEnd()
    try StreamCalls.write([UInt8](repeating: 7, count: 1 << 20), to: input.writeEnd)
    input.closeWriteEnd()
    #expect(try StreamCalls.contents(of: output.readEnd) == Array("1048576\n".utf8))
    #expect(try child.waitForEnd() == .exited(0))
  }
}
