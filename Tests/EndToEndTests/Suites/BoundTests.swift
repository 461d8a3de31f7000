import Foundation
import Glibc
import Testing

/// Every external input is bounded before it costs anything: the mount continues for all readers.
extension RealMounts {
  @Suite struct Bounds {
    /// Makes `origin` answer requests for a directory with a page.
    private func list(_ html: String, at path: String, of origin: OriginServer) throws {
      let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \(html.utf8.count)\r\n\r\n"
      try origin.post([
        "match": ["path": path], "name": path,
        "actions": [["text": head], ["base64": Data(html.utf8).base64EncodedString()]],
      ])
    }

    private func url(_ path: String, of origin: OriginServer) -> String {
      "http://127.0.0.1:\(origin.port)\(path)"
    }

    @Test func `a listed length is shown up to 2^60; one beyond it ends no mount`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let lengths = ["1152921504606846976", "1152921504606846977", "9223372036854775807"]
      let rows = lengths.map { "<a href=\"f\($0)\">f</a>  21-Nov-2026 09:01  \($0)\n" }
      try list("<pre>\(rows.joined())</pre>", at: "/data/sizes/", of: origin)
      let mount = try sandbox.mount(source: url("/data/sizes/", of: origin))
      let text = try output(of: ["stat", "--format=%s %b", mount.path("f" + lengths[0])])
      #expect(text == "1152921504606846976 2251799813685248\n")
      // The mount asks their servers instead, which do not have the files.
      for length in lengths[1...] { _ = try run(["stat", mount.path("f" + length)]) }
      #expect(mount.process.isRunning)
      #expect(try mount.unmount() == .exited(0))
    }

    /// Without the bound, 1.5 MB of this kept libxml2 busy for more than the 40 s of the time
    /// limit.
    @Test
    func `a tag of very many attributes delays no other listing, and not the end of the mount`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // 240,000 attributes, as many different ones as a message to the origin can hold.
      let block = (0..<8000).map { String($0 + 60_000_000, radix: 36) + " " }.joined()
      try origin.post([
        "match": ["path": "/data/evil/"], "name": "evil",
        "actions": [
          ["text": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a "],
          ["repeat": 30, "actions": [["text": block]]], ["text": ">x</a>"], "close",
        ],
      ])
      try list("<a href=f>f</a>", at: "/data/good/", of: origin)
      let mount = try sandbox.mount(urls: [
        url("/data/evil/", of: origin), url("/data/good/", of: origin),
      ])
      let evil = try sandbox.start(["ls", mount.path("evil")])
      #expect(evil.wait(within: .seconds(10)) == .exited(2))
      #expect(try output(of: ["ls", mount.path("good")], within: .seconds(5)) == "f\n")
      #expect(try mount.unmount() == .exited(0))
      #expect(mount.process.standardError.contains("no listing: a tag of more than 64 KiB"))
    }

    @Test func `a list that is read again with 66,000 header lines changes nothing`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let line = origin.url("a.bin", length: 1000, seed: 1401) + "\n"
      let list = try sandbox.write(line, to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      try sandbox.write(
        line + String(repeating: " header=a:b\n", count: 66_000), to: "urls.txt")
      mount.process.signal(SIGHUP)
      let isRefused = Deadline(after: .seconds(20)).wait {
        mount.process.standardError.contains("more than 100 header= lines")
          || !mount.process.isRunning
      }
      #expect(isRefused)
      #expect(try mount.sha256("a.bin") == Digest.ofContent(seed: 1401, byteCount: 1000))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(arguments: [
      ["-qH", "X-Key: CANARY"], ["-qqH", "X-Key: CANARY"], ["-H", "X-Key: CANARY"],
    ])
    func `header values are no longer in the command line`(options: [String]) throws {
      try expectHidden(in: ["get"] + options, url: { $0 })
    }

    @Test func `nor are the fragment of a URL and its userinfo`() throws {
      try expectHidden(in: ["get"]) { $0 + "#CANARY" }
      try expectHidden(in: ["get"]) {
        $0.replacingOccurrences(of: "http://", with: "http://user:CANARY@")
      }
    }

    private func expectHidden(
      in arguments: [String], url: (String) -> String,
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let target = url(origin.url("a.bin", length: 1000, seed: 1, query: "fault=stall-head"))
      let process = try work.sandbox.start(try work.commandLine(arguments + [target]))
      // The program hides them as soon as it runs.
      var line = ""
      let isHidden = Deadline(after: .seconds(20)).wait {
        line = ProcessTable.commandLine(of: process.processID).joined(separator: " ")
        return line.contains(" get ") && !line.contains("CANARY")
      }
      #expect(isHidden && process.isRunning, "\(line)", sourceLocation: sourceLocation)
      process.kill()
    }

    @Test(arguments: ["mount", "list", "get"])
    func `a URL without its scheme gives no password away`(command: String) throws {
      let work = try TransferWorkspace()
      let mountpoint = try work.sandbox.makeDirectory("mnt")
      let result = try work.run(
        [command, "user:CANARY@host.invalid/x"] + (command == "mount" ? [mountpoint] : []))
      #expect(!result.succeeded)
      #expect(!(result.output + result.error).contains("CANARY"), "\(result.error)")
    }

    @Test func `control characters of a server reach no terminal through the log`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let type = "text/\u{9B}31mX"
      try origin.post([
        "match": ["path": "/data/d/"], "name": "d",
        "actions": [
          ["text": "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nContent-Length: 0\r\n\r\n"]
        ],
      ])
      let mount = try sandbox.mount(urls: [url("/data/d/", of: origin)])
      _ = try run(["ls", mount.path("d")])
      #expect(try mount.unmount() == .exited(0))
      let log = mount.process.standardError
      #expect(log.contains("no HTML listing, but 'text/"), "\(log)")
      #expect(log.contains("\\u{9B}31mX'"), "\(log)")
      #expect(!log.unicodeScalars.contains { (0x7F...0x9F).contains($0.value) }, "\(log)")
    }
  }
}
