import Foundation
import Glibc
import Testing

/// `httpfs get --compressed` with bodies that grow a thousandfold: in bounded memory, whatever holds
/// them back.
extension RealMounts {
  @Suite struct GetCompressed {
    enum Line: CaseIterable { case http1, http2 }

    private static let byteCount = 512 << 20
    private static let digest = "9acca8e8c22201155389f65abbf6bc9723edc7384ead80503839f49dcc56d767"
    /// In KiB, as time(1) counts.
    private static let memoryLimit = 48 << 10

    /// A server of `a.bin`: half a MiB of gzip that decodes to 512 MiB.
    private func serve(
      _ line: Line, in work: TransferWorkspace
    ) throws -> (server: NginxServer, url: String, options: [String]) {
      let root = try work.sandbox.makeDirectory("root")
      try shell("head -c \(Self.byteCount) /dev/zero | gzip -9 > \(quoted(root))/a.bin")
      let coding = "add_header Content-Encoding gzip;"
      guard line == .http2 else {
        let server = try work.sandbox.nginx(root: root, locations: coding)
        return (server, server.url("a.bin"), [])
      }
      let authority = try work.sandbox.certificateAuthority()
      let server = try work.sandbox.nginx(
        root: root, locations: coding,
        features: ServerFeatures(certificate: try authority.certificate(), http2: true))
      return (
        server, try server.secureURL("a.bin"), ["--http2", "--ca-file", authority.certificatePath]
      )
    }

    /// Runs `httpfs get --compressed`; returns what it has written to its pipe, as `reader` says,
    /// and the peak of its memory in KiB.
    private func measure(
      _ arguments: [String], in work: TransferWorkspace, reader: String
    ) throws -> (output: String, memory: Int) {
      let command = try work.commandLine(["get", "--compressed"] + arguments)
        .map(quoted).joined(separator: " ")
      let memory = work.path("memory")
      let output = try shell(
        "set -o pipefail; command time -f %M -o \(quoted(memory)) \(command) | \(reader)")
      return (output, try #require(Int(work.text("memory").filter(\.isNumber))))
    }

    @Test(arguments: Line.allCases)
    func `a slow reader of the pipe gets all of a body that grows a thousandfold`(
      _ line: Line
    ) throws {
      let work = try TransferWorkspace()
      let (server, url, options) = try serve(line, in: work)
      let result = try measure(
        options + ["-o", "-", url], in: work, reader: "(sleep 2; sha256sum)")
      #expect(result.output.prefix(64) == Self.digest)
      #expect(result.memory < Self.memoryLimit)
      _ = server
    }

    @Test(arguments: Line.allCases)
    func `a rate limit lets a body pass that grows a thousandfold`(_ line: Line) throws {
      let work = try TransferWorkspace()
      let (server, url, options) = try serve(line, in: work)
      let result = try measure(
        options + ["-o", "a.bin", "--rate-limit", "256k", url], in: work, reader: "cat")
      #expect(try work.sha256("a.bin") == Self.digest)
      #expect(result.memory < Self.memoryLimit)
      _ = server
    }

    @Test func `Ctrl-C ends it while it decodes into a full pipe`() throws {
      let work = try TransferWorkspace()
      let (server, url, _) = try serve(.http1, in: work)
      let pipe = work.path("pipe")
      #expect(mkfifo(pipe, 0o600) == 0)
      // A reader that takes nothing.
      let reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
      defer { close(reader) }
      let command = try work.commandLine(["get", "--compressed", "-o", "-", url])
      let process = try work.sandbox.start(
        ["bash", "-c", "exec \(command.map(quoted).joined(separator: " ")) >\(quoted(pipe))"])
      var (filled, before) = (CInt(0), CInt(0))
      #expect(
        Deadline(after: .seconds(10)).wait(every: .milliseconds(300)) {
          defer { before = filled }
          return ioctl(reader, UInt(FIONREAD), &filled) == 0 && filled > 0 && filled == before
        })
      let memory = try ProcessTable.residentByteCount(of: process.processID)
      #expect(memory < Int64(Self.memoryLimit) << 10)
      process.signal(SIGINT)
      let time = elapsed {
        #expect(process.wait(within: .seconds(30)) == .exited(130))
      }
      #expect(time < .seconds(3))
      _ = server
    }

    @Test(arguments: [byteCount, byteCount - 1])
    func `the length of a list is that of the decoded body`(_ length: Int) throws {
      let work = try TransferWorkspace()
      let (server, url, _) = try serve(.http1, in: work)
      let list = try work.sandbox.write("\(url)\n  out=a.bin\n  length=\(length)\n", to: "list")
      let result = try work.get("--compressed", "-i", list)
      let isRight = length == Self.byteCount
      #expect(result.ending == .exited(isRight ? 0 : 22))
      #expect(
        isRight
          || result.error.contains("the server's file has \(Self.byteCount) bytes, not \(length)"))
      #expect(FileManager.default.fileExists(atPath: work.path("a.bin")) == isRight)
      _ = server
    }
  }
}
