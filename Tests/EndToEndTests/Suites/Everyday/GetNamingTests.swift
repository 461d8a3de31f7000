import Foundation
import Glibc
import Testing

/// Files whose servers name them, by `Content-Disposition`.
extension RealMounts {
  @Suite struct GetNaming {
    private static let length: Int64 = 3 << 20
    private static let digest = Digest.ofContent(seed: 5, byteCount: length)

    /// Makes the responses for `path` carry the field.
    private func disposition(
      _ field: String, of path: String = "*", at origin: OriginServer
    ) throws {
      try origin.post([
        "match": ["path": path], "name": path,
        "actions": [["head": ["set": ["Content-Disposition": field]]], "body"],
      ])
    }

    private func url(_ origin: OriginServer, _ name: String = "get.php") -> String {
      origin.url(name, length: Self.length, seed: 5)
    }

    @Test(arguments: ["get", "get.php", "a.bin"])
    func `a file gets the name that its server sends, where the URL has no ordinary one`(
      _ name: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition(
        "attachment; filename=x; filename*=UTF-8''r%C3%A9sum%C3%A9%201.pdf", at: origin)
      let result = try work.get(url(origin, name))
      #expect(result.succeeded, "\(result.error)")
      let isOrdinary = name == "a.bin"
      let file = isOrdinary ? "a.bin" : "résumé 1.pdf"
      #expect(work.names == [file])
      #expect(try work.sha256(file) == Self.digest)
      #expect(!result.error.contains("asking"), "\(result.error)")
      // The question costs a request of one byte, and only where it is worth one.
      let questions = try origin.requests().filter { $0.range == "bytes=0-0" }
      #expect(questions.count == (isOrdinary ? 0 : 1))
      // The same command finds the file.
      let again = try work.get(url(origin, name))
      #expect(again.succeeded && again.error.contains("unchanged"), "\(again.error)")
    }

    @Test(arguments: ["-J", "--remote-header-name", "--content-disposition", "-OJL"])
    func `-J asks for every name`(_ option: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let result = try work.get(option, url(origin, "a.bin"))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["b.bin"])
      #expect(try work.get("-J", "--tree", url(origin, "a.bin")).ending == .exited(64))
    }

    @Test(arguments: [
      ["--no-content-disposition"], ["-o", "get.php"], ["--tree"], ["-o", "-"],
    ])
    func `nobody is asked for a name that the user gives`(_ options: [String]) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let result = try work.run(["get", "-x", "1"] + options + [url(origin)])
      #expect(result.succeeded, "\(result.error)")
      #expect(FileStatus.files(named: "b.bin", below: work.directory).isEmpty)
      #expect(try origin.requests().count == 1)
    }

    @Test func `-o DIR and dir= keep their places, out= its name, and JSON tells the name`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let list = try work.sandbox.write(
        "\(url(origin, "one"))\n  dir=sub\n\(url(origin, "two"))\n  out=mine\n", to: "list")
      let result = try work.get("--json", "-o", "down/", "-i", list)
      #expect(result.succeeded, "\(result.output)\(result.error)")
      #expect(try work.sha256("down/sub/b.bin") == Self.digest)
      #expect(try work.sha256("down/mine") == Self.digest)
      let names = try result.jsonLines().compactMap { $0["name"] as? String }
      #expect(Set(names) == ["down/sub/b.bin", "down/mine"])
    }

    @Test(arguments: ["405", "403", "503", "reset", "none", "stall"])
    func `without a usable answer, the file has the name of its URL, and nothing is said`(
      _ fault: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let action: Any =
        switch fault {
        case "reset": "reset"
        case "none": ["head": ["set": ["Content-Disposition": "attachment"]]]
        case "stall": "stall"
        default: ["text": "HTTP/1.1 \(fault) No\r\nContent-Length: 0\r\n\r\n"]
        }
      try origin.post([
        "match": ["path": "*", "fields": ["Range": "bytes=0-0"]],
        "actions": fault == "none" ? [action, "body"] : [action],
      ])
      let result = try work.get("--stall-timeout", "1", url(origin))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["get.php"])
      #expect(result.errorLines.allSatisfy { $0.hasPrefix("get.php: ") }, "\(result.error)")
    }

    @Test func `a server without ranges is not made to send the file twice`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let length: Int64 = 64 << 20
      let whole = origin.url("get", length: length, seed: 5, query: "ranges=no")
      let result = try work.get(whole)
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["b.bin"])
      // The kernel holds as much of the first answer as its socket buffers can grow to.
      #expect(try origin.requests().bodyByteCount < length + length / 2)
    }

    @Test func `an empty file has the name that its server sends`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let result = try work.get(origin.url("get", length: 0, seed: 5))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["b.bin"])
    }

    @Test func `an interrupted download resumes under the same name`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let length: Int64 = 10 << 20
      let slow = origin.url("get", length: length, seed: 5, query: "rate=1m")
      let process = try work.start("get", "-x", "1", slow)
      #expect(work.waitForPart(of: "b.bin"))
      pause(for: .seconds(1))
      process.signal(SIGINT)
      #expect(process.wait(within: .seconds(10)) == .exited(130))
      try origin.control("*", ["rate": "100m"])
      let second = try work.get(slow)
      #expect(second.succeeded && second.error.contains("resum"), "\(second.error)")
      #expect(work.names == ["b.bin"])
      #expect(try work.sha256("b.bin") == Digest.ofContent(seed: 5, byteCount: length))
    }

    @Test func `a session keeps the name`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      try origin.post([
        "match": ["path": "*", "requests": ["from": 2, "to": 2]], "parameters": ["status": 403],
        "name": "refusal",
      ])
      let first = try work.get("--session", "s", url(origin))
      #expect(first.ending == .exited(24), "\(first.error)")
      #expect(try work.text("s").contains("out=.//b.bin"))
      try disposition("attachment; filename=c.bin", at: origin)
      #expect(try work.get("--session", "s").succeeded)
      #expect(work.names == ["b.bin"])
    }

    @Test func `a name that is taken is kept, and a file of the user is not replaced`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      try work.sandbox.write("mine\n", to: "work/b.bin")
      let refused = try work.get(url(origin))
      #expect(refused.ending == .exited(73), "\(refused.error)")
      #expect(try work.text("b.bin") == "mine\n")
      // Also a name that other files of the command have; the server is not the one to choose.
      let second = try work.get("-o", "d/", url(origin), url(origin, "get"), url(origin, "b.bin"))
      #expect(second.ending == .exited(73), "\(second.error)")
      #expect(second.error.contains("has the same name here"), "\(second.error)")
      #expect(second.error.contains("2 failed"), "\(second.error)")
      #expect(try work.sha256("d/b.bin") == Self.digest)
      #expect(try origin.requests().filter { $0.path == "/data/b.bin" }.count > 0)
    }

    @Test func `several files of one URL path get the names that tell them apart`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=\"{field(X-Name)}.bin\"", at: origin)
      let urls = ["one", "two"].map { "\(url(origin))&x=\($0)\n  header=X-Name: \($0)\n" }
      let list = try work.sandbox.write(urls.joined(), to: "list")
      let result = try work.get("-i", list)
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["one.bin", "two.bin"])
    }

    @Test(arguments: [
      ("../../escape", "escape"), (".bashrc", "_bashrc"), ("-rf", "_rf"),
      ("/tmp/absolute", "absolute"), ("a\u{202E}b", "a_b"), ("..", "get.php"),
      (String(repeating: "n", count: 300) + ".bin", String(repeating: "n", count: 251) + ".bin"),
    ])
    func `a hostile name stays in the directory, and is no setting and no option`(
      _ sent: String, _ name: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=\"\(sent)\"", at: origin)
      let result = try work.get("-o", "down/", url(origin))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["down"])
      #expect(try work.sha256("down/\(name)") == Self.digest)
      #expect(try FileManager.default.contentsOfDirectory(atPath: work.path("down")) == [name])
    }

    @Test func `a URL without a name and without an answer is refused, with what to do`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let nameless = origin.url("", length: 10, seed: 1)
      let shown = nameless.prefix { $0 != "?" }
      for options in [[], ["--no-content-disposition"]] {
        let result = try work.run(["get"] + options + [nameless, url(origin, "a.bin")])
        #expect(result.ending == .exited(1))
        #expect(
          result.errorLines
            == ["httpfs: '\(shown)': the URL has no file name; choose one with -o FILE"])
      }
      let list = try work.sandbox.write("\(nameless)\n", to: "list")
      let result = try work.get("-i", list)
      #expect(result.error.contains("the URL has no file name; choose one with out="))
      #expect(work.names.isEmpty)
    }
  }
}
