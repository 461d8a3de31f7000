import Foundation
import Glibc
import Testing

/// Questions for names that fail or take long, and names that cannot be used.
extension RealMounts.GetNaming {
  @Test func `a session asks again for names that a server could not say`() throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    try disposition("attachment; filename=\"{field(X-Name)}.bin\"", at: origin)
    try origin.post([
      "match": ["path": "*", "fields": ["Range": "bytes=0-0"]], "parameters": ["status": 503],
      "name": "busy",
    ])
    let urls = [url(origin), url(origin) + "&x=2", origin.url("", length: 10, seed: 1)]
    let list = try work.sandbox.write(
      urls.enumerated().map { "\($1)\n  dir=d\n  header=X-Name: \($0)\n" }.joined(), to: "list")
    let sums = try work.sandbox.write("\(Self.digest)  1.bin\n", to: "sums")
    let checked = try work.get("--checksum-file", sums, urls[0])
    #expect(checked.ending == .exited(22), "\(checked.error)")
    #expect(checked.error.contains("HTTP 503"), "\(checked.error)")
    #expect(checked.error.contains("'get.php' has no line"), "\(checked.error)")

    let first = try work.get("-o", "o/", "--session", "s", "-i", list)
    #expect(first.ending == .exited(22), "\(first.error)")
    #expect(first.error.contains("2 failed"), "\(first.error)")
    #expect(work.names == ["o", "s"])
    try origin.clearControl()
    try disposition("attachment; filename=\"{field(X-Name)}.bin\"", at: origin)
    let second = try work.get("--session", "s")
    #expect(second.succeeded, "\(second.error)")
    #expect(work.names == ["o"])
    for name in ["get.php", "1.bin"] { #expect(try work.sha256("o/d/\(name)") == Self.digest) }
    #expect(FileStatus.byteCount(of: work.path("o/d/2.bin")) == 10)
  }

  @Test func `what --checksum-file could not look up does not wait in a session unverified`() throws
  {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    try origin.control("*", ["status": "503"])
    let sums = try work.sandbox.write("\(Self.digest)  b.bin\n", to: "sums")
    let urls = [url(origin), origin.url("", length: 10, seed: 1), origin.origin + "/list/"]
    for (options, url) in zip([[], [], ["-r"]], urls) {
      let result = try work.run(
        ["get", "--retries", "0", "--session", "s", "--checksum-file", sums] + options + [url])
      #expect(result.ending.isTransferFailure, "\(result.error)")
      #expect(result.error.contains("HTTP "), "\(result.error)")
      #expect(result.error.contains("the session does not keep it"), "\(result.error)")
      #expect(work.names.isEmpty, "\(url)")
    }
  }

  @Test func `a session cannot hold the directory of a file whose server does not answer`() throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    try origin.control("*", ["status": "503"])
    for name in ["", "get.php"] {
      let result = try work.get(
        "--retries", "0", "--session", "s", "-o", "x\n  header=X-Key: injected/",
        origin.url(name, length: 10, seed: 1))
      #expect(result.error.contains("a session cannot hold the name"), "\(result.error)")
      #expect(work.names.isEmpty)
    }
  }

  @Test func `a file without a name keeps its directory in a session`() throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    let nameless = origin.url("", length: 10, seed: 1)
    try origin.control("*", ["status": "503"])
    let first = try work.get("--retries", "0", "--session", "s", "-o", "d/", nameless)
    #expect(first.ending == .exited(22), "\(first.error)")
    try origin.clearLog()
    let none = try work.get("--session", "s", "--no-content-disposition")
    #expect(none.ending == .exited(1), "\(none.error)")
    #expect(try origin.requests().isEmpty)
    try origin.clearControl()
    try disposition("attachment; filename=b.bin", at: origin)
    let second = try work.get("--session", "s", nameless)
    #expect(second.succeeded, "\(second.error)")
    #expect(second.error.contains("keeps its place in the session"), "\(second.error)")
    #expect(FileStatus.byteCount(of: work.path("d/b.bin")) == 10)
  }

  @Test func `a question waits as long as a busy server asks for`() throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    try disposition("attachment; filename=b.bin", at: origin)
    let busy = "HTTP/1.1 429 No\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
    try origin.post([
      "match": ["path": "*", "requests": ["from": 1, "to": 2]], "actions": [["text": busy]],
      "name": "busy",
    ])
    let result = try work.get(url(origin))
    #expect(result.succeeded, "\(result.error)")
    #expect(work.names == ["b.bin"])
    #expect(result.duration > .seconds(2))
  }

  @Test(.timeLimit(.minutes(1)), arguments: ["refused", "silent"])
  func `the target of a redirect does not keep its server from naming other files`(
    _ fault: String
  ) throws {
    let work = try TransferWorkspace()
    let (origin, target) = (try OriginServer(), try OriginServer())
    try disposition("attachment; filename=b.bin", of: "/data/get", at: origin)
    try target.post([
      "match": ["path": "*", "fields": ["Range": "bytes=0-0"]], "actions": ["stall"],
    ])
    let place = fault == "refused" ? "http://127.0.0.1:1/" : target.fileURL("x")
    let redirected = origin.url("x", length: 1, seed: 1, query: "redirect=\(place)")
    let urls = (0..<3).map { url(origin, "y\($0)") + "&latency=300" } + [url(origin, "get")]
    let result = try work.run(["get", "-j", "1", "--retries", "0", redirected] + urls)
    #expect(try work.sha256("b.bin") == Self.digest, "\(result.error)")
  }

  @Test func `a server that answers no question is asked one batch of them`() throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    try origin.post([
      "match": ["path": "*", "fields": ["Range": "bytes=0-0"]], "actions": ["stall"],
    ])
    let urls = (0..<9).map { url(origin, "x\($0)") }
    let result = try work.run(["get", "--stall-timeout", "3", "--retries", "0"] + urls)
    #expect(result.succeeded, "\(result.error)")
    #expect(result.error.contains("9 files have the names of their URLs"), "\(result.error)")
    // The queue begins others at once; they are ended before they wait.
    #expect(result.duration < .seconds(6), "\(result.duration)")
  }

  @Test func `a server that names a directory that is there is said to`() throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    try disposition("attachment; filename=b.bin", at: origin)
    _ = try work.sandbox.makeDirectory("work/b.bin")
    let result = try work.get("--session", "s", url(origin))
    #expect(result.ending == .exited(73), "\(result.error)")
    #expect(result.error.contains("its server has given it the name"), "\(result.error)")
    #expect(work.names == ["b.bin"])
  }

  @Test func `Ctrl-C and --max-time in a question are said, the latter also with -q`() throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    try origin.post(["match": ["path": "*"], "actions": ["stall"]])
    let late = try work.get("-q", "--max-time", "1s", url(origin))
    #expect(late.ending == .exited(2))
    #expect(late.errorLines.map { $0.contains("--max-time") } == [true], "\(late.error)")
    func isAsked() -> Bool { (try? origin.activeRequestCount()) ?? 0 > 0 }
    #expect(Deadline(after: .seconds(20)).wait { !isAsked() })
    let process = try work.start("get", url(origin))
    #expect(Deadline(after: .seconds(20)).wait { isAsked() })
    process.signal(SIGINT)
    #expect(process.wait(within: .seconds(10)) == .exited(130))
    #expect(process.standardError.contains("interrupted before the first download"))
  }
}
