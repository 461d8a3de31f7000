import Foundation
import Glibc
import Testing

/// Uploads that fail, and those that succeed at a second attempt: the user learns which it was.
extension RealMounts {
  @Suite struct PutFailure {
    private static let length: Int64 = 20 << 20

    private func url(_ origin: OriginServer, query: String = "") -> String {
      origin.url("up.bin", length: 1, seed: 1, query: query)
    }

    private func expectOneFailure(_ result: CommandResult, mentions text: String) {
      #expect(result.ending.isTransferFailure)
      let failures = result.errorLines.filter {
        $0.contains("failed: ") || $0.hasPrefix("httpfs: ")
      }
      #expect(failures.count == 1, "\(result.error)")
      #expect(failures.first?.contains(text) == true, "\(result.error)")
    }

    // MARK: Servers

    @Test func `an answer in the middle of the body is the reason`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      _ = try work.writeContent("a.bin", seed: 31, byteCount: Self.length)
      let result = try work.put(
        "a.bin", url(origin, query: "fault=upload-early-response&fault-at=1m"))
      expectOneFailure(result, mentions: "HTTP 413")
      #expect(try origin.requests().count == 1)
    }

    @Test func `a PUT whose connection was reset is sent again from the start`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let hash = try work.writeContent("a.bin", seed: 31, byteCount: Self.length)
      let result = try work.put(
        "--json", "a.bin", url(origin, query: "fault=upload-reset&fault-at=8m&fault-count=2"))
      #expect(result.succeeded, "\(result.output)")
      let requests = try origin.requests()
      #expect(requests.map(\.status) == [0, 0, 201])
      #expect(requests.last?.requestBodyHash == hash)
      #expect(try result.jsonLines().last?["sent"] as? Int64 == Self.length)
    }

    @Test func `a POST whose connection was reset is not sent twice`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      _ = try work.writeContent("a.bin", seed: 31, byteCount: Self.length)
      let result = try work.put(
        "a.bin", "--method", "POST", url(origin, query: "fault=upload-reset&fault-at=8m"))
      #expect(result.ending == .exited(6))
      #expect(result.error.contains("connection lost"), "\(result.error)")
      #expect(try origin.requests().count == 1)
    }

    @Test func `a server that is busy is asked again`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let hash = try work.writeContent("a.bin", seed: 31, byteCount: 100_000)
      let result = try work.put("a.bin", url(origin, query: "status=503&fault-count=1"))
      #expect(result.succeeded, "\(result.error)")
      let requests = try origin.requests()
      #expect(requests.map(\.status) == [503, 201])
      #expect(requests.last?.requestBodyHash == hash)
    }

    @Test func `a server that dies under an upload is told of`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try shell("truncate -s 64M \(quoted(work.path("a.bin")))")
      let process = try work.start(
        "put", "--retries", "1", "a.bin", url(origin, query: "upload-rate=4m"))
      pause(for: .seconds(1))
      #expect(process.isRunning)
      origin.stop()
      #expect(process.wait(within: .seconds(20)) == .exited(6))
      let last = try #require(process.standardError.split(separator: "\n").last)
      #expect(last.hasPrefix("a.bin: failed: connection "), "\(last)")
    }

    @Test func `a server that stops reading is given up after --timeout`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try shell("truncate -s 64M \(quoted(work.path("a.bin")))")
      let result = try work.put(
        "--retries", "0", "--timeout", "2", "a.bin",
        url(origin, query: "fault=upload-stall&fault-at=1m"), within: .seconds(15))
      expectOneFailure(result, mentions: "timed out")
    }

    @Test(arguments: [403, 404, 405, 507])
    func `a refusal is told with its status`(_ status: Int) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      _ = try work.writeContent("a.bin", seed: 31, byteCount: 1000)
      let result = try work.put("--retries", "0", "a.bin", url(origin, query: "status=\(status)"))
      expectOneFailure(result, mentions: "HTTP \(status)")
    }

    // MARK: Sources

    @Test func `a source that is missing, a directory or a pipe is refused, and nothing is sent`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      _ = try work.sandbox.makeDirectory("work/directory")
      #expect(mkfifo(work.path("pipe"), 0o600) == 0)
      let cases = [
        ("missing", "No such file or directory"), ("directory", "Is a directory"),
        ("pipe", "not a regular file"), ("", "No such file or directory"),
      ]
      for (name, reason) in cases {
        expectOneFailure(
          try work.put(name, url(origin), within: .seconds(10)), mentions: reason)
        expectOneFailure(
          try work.put("--form", "f=@\(name)", url(origin), within: .seconds(10)),
          mentions: reason)
      }
      #expect(try origin.requests().isEmpty)
    }

    @Test func `a source that claims to be empty and is not is never sent as an empty one`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      expectOneFailure(
        try work.put("/proc/version", url(origin)), mentions: "it does not tell its length")
      expectOneFailure(
        try work.put("--form", "f=@/proc/version", url(origin)),
        mentions: "it does not tell its length")
      #expect(try origin.requests().isEmpty)
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to become another user"))
    func `a source that may not be read is refused`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let path = try work.sandbox.write("secret", to: "work/private")
      #expect(chmod(path, 0o600) == 0)
      let result = try run(
        ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
          + work.commandLine(["put", "private", url(origin)]))
      expectOneFailure(result, mentions: "Permission denied")
      #expect(try origin.requests().isEmpty)
    }

    @Test(arguments: ["-s 8M", "-s 65M", "-s 64M"])
    func `a source that shrinks, grows or changes while it is sent fails`(_ size: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let path = work.path("a.bin")
      try shell("truncate -s 64M \(quoted(path))")
      let process = try work.start("put", "a.bin", url(origin, query: "upload-rate=8m"))
      pause(for: .seconds(1))
      #expect(process.isRunning)
      try shell(
        size == "-s 64M"
          ? "printf x | dd of=\(quoted(path)) bs=1 conv=notrunc status=none"
          : "truncate \(size) \(quoted(path))")
      #expect(process.wait(within: .seconds(20)) == .exited(9))
      let last = try #require(process.standardError.split(separator: "\n").last)
      #expect(last.contains("'a.bin' has changed while it was sent"), "\(last)")
      // The server never treats the upload as complete.
      #expect(try origin.requests().allSatisfy { $0.status != 201 })
    }

    // MARK: Usage

    @Test(arguments: [
      [], ["a.bin"], ["a.bin", "http://127.0.0.1:9/", "more"],
      ["a.bin", "http://127.0.0.1:9/", "--method", "DELETE"],
      ["a.bin", "http://127.0.0.1:9/", "--form", "x=y"], ["http://127.0.0.1:9/", "--form", "x"],
      ["a.bin", "http://127.0.0.1:9/", "--no-such-option"],
      ["a.bin", "http://127.0.0.1:9/", "-o", "-", "--json"],
      ["a.bin", "http://127.0.0.1:9/", "-o", ""], ["-"],
    ])
    func `bad usage ends with 64`(_ arguments: [String]) throws {
      let work = try TransferWorkspace()
      _ = try work.writeContent("a.bin", seed: 31, byteCount: 10)
      let result = try work.run(["put"] + arguments)
      #expect(result.ending == .exited(64))
      #expect(result.error.hasPrefix("httpfs: "), "\(result.error)")
    }

    @Test(arguments: ["not a url", "ftp://127.0.0.1/a", "http://", "a.bin"])
    func `a bad URL is refused`(_ url: String) throws {
      let work = try TransferWorkspace()
      _ = try work.writeContent("a.bin", seed: 31, byteCount: 10)
      expectOneFailure(try work.put("a.bin", url), mentions: "malformed URL: ")
    }
  }
}
