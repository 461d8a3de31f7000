import Foundation
import Glibc
import Testing

/// `httpfs put -`: standard input arrives whole, also at a second attempt.
extension RealMounts {
  @Suite struct PutPipe {
    private static let length: Int64 = 20 << 20

    private func url(_ origin: OriginServer, query: String = "") -> String {
      origin.url("up.bin", length: 1, seed: 1, query: query)
    }

    /// Runs `httpfs put - URL` behind a pipe from `cat`.
    private func put(
      _ work: TransferWorkspace, _ file: String, _ url: String, environment: [String] = []
    ) throws -> CommandResult {
      let command = try (environment + work.commandLine(["put", "-", url])).map(quoted)
      return try run([
        "bash", "-c",
        "cat \(quoted(work.path(file))) | env \(command.joined(separator: " "))",
      ])
    }

    @Test func `the bytes of a pipe are sent, and sent again after a lost connection`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let hash = try work.writeContent("a.bin", seed: 41, byteCount: Self.length)
      let temporary = try work.sandbox.makeDirectory("temporary")
      let result = try put(
        work, "a.bin", url(origin, query: "fault=upload-reset&fault-at=8m&fault-count=1"),
        environment: ["TMPDIR=\(temporary)"])
      #expect(result.succeeded, "\(result.error)")
      #expect(result.error.contains("standard input: 20 MiB in "), "\(result.error)")
      let requests = try origin.requests()
      #expect(requests.map(\.status) == [0, 201])
      #expect(requests.last?.requestBodyHash == hash)
      #expect(requests.last?.fields["content-length"] == String(Self.length))
      #expect(try FileManager.default.contentsOfDirectory(atPath: temporary).isEmpty)
    }

    @Test func `an empty standard input is an empty file`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.put("-", url(origin))
      #expect(result.succeeded, "\(result.error)")
      #expect(try origin.requests().last?.fields["content-length"] == "0")
    }

    @Test func `a full or missing TMPDIR is named before anything is sent`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      _ = try work.writeContent("a.bin", seed: 41, byteCount: 1 << 20)
      let disk = try TinyDisk(at: try work.sandbox.makeDirectory("tiny"), byteCount: 64 << 10)
      let full = try put(work, "a.bin", url(origin), environment: ["TMPDIR=\(disk.path)"])
      #expect(full.ending == .exited(9))
      #expect(
        full.error.contains("temporary file in '\(disk.path)': No space left on device"),
        "\(full.error)")
      let missing = try put(work, "a.bin", url(origin), environment: ["TMPDIR=/no\u{1B}where"])
      #expect(missing.ending == .exited(9))
      #expect(
        missing.error.contains("'/no\\u{1B}where': No such file or directory"), "\(missing.error)")
      #expect(try origin.requests().isEmpty)
    }

    @Test(arguments: [false, true])
    func `--max-time limits the copy of standard input`(isEndless: Bool) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let words = try work.commandLine(["put", "-", url(origin), "--max-time", "1s"])
      let pipe = ["bash", "-c", "yes | \(words.map(quoted).joined(separator: " "))"]
      let result = try run(isEndless ? pipe : words, input: .pipe)
      #expect(result.ending == .exited(2), "\(result.error)")
      #expect(result.error.contains("--max-time"), "\(result.error)")
      #expect(result.duration < .seconds(10))
      #expect(try origin.requests().isEmpty)
    }
  }
}
