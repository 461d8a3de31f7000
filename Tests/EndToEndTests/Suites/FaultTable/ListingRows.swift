import Foundation
import Glibc
import SeededRandom
import Testing

/// Row 65 of the fault table: invalid or hostile directory listings.
extension RealMounts {
  @Suite struct ListingRows {
    /// An origin whose directory `/data/list/` a test controls, and a second, valid directory.
    private final class HostileServer {
      let sandbox: Sandbox
      let origin: OriginServer
      var random: SeededGenerator
      /// The length and seed of every file.
      private static let length: Int64 = 3000
      private let seed: UInt64
      private var caseCount = 0

      init(seed: UInt64) throws {
        sandbox = try Sandbox()
        origin = try OriginServer()
        random = SeededGenerator(seed: seed &* 65)
        self.seed = seed
        try origin.post([
          "match": "/data/*", "parameters": ["length": String(Self.length), "seed": String(seed)],
        ])
        try list("<a href='good.bin'>good</a>", at: "/data/neighbour/")
        try list((0..<100).map { "<a href='\($0)/'>x</a>" }.joined(), at: "/data/cases/")
      }

      func url(_ path: String = "/data/list/") -> String {
        "http://127.0.0.1:\(origin.port)\(path)"
      }

      /// Answers requests for `path` with `actions` of docs/ORIGIN.md.
      ///
      /// The default path is a new directory.
      ///
      /// - Returns: the name of that directory on the mount.
      @discardableResult
      func answer(_ actions: [Any], at path: String? = nil) throws -> String {
        if path == nil { caseCount += 1 }
        let path = path ?? "/data/cases/\(caseCount)/"
        try origin.post(["match": ["path": path], "name": path, "actions": actions])
        return "cases/\(caseCount)"
      }

      /// Answers requests for `path` with a page.
      @discardableResult
      func list(
        _ html: some Sequence<UInt8>, at path: String? = nil, fields: String = ""
      ) throws -> String {
        let bytes = Data(html)
        return try answer(
          [
            [
              "text": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\(fields)"
                + "Content-Length: \(bytes.count)\r\n\r\n"
            ],
            ["base64": bytes.base64EncodedString()],
          ], at: path)
      }

      @discardableResult
      func list(_ html: String, at path: String? = nil, fields: String = "") throws -> String {
        try list(html.utf8, at: path, fields: fields)
      }

      /// Mounts the directories as `list`, `cases` and `neighbour`.
      func mount() throws -> Mount {
        try sandbox.mount(
          urls: [url(), url("/data/cases/"), url("/data/neighbour/")],
          options: ["--read-timeout", "8"])
      }

      /// Expects a file of the origin to be right on the mount.
      func expectRight(
        _ mount: Mount, _ name: String, sourceLocation: SourceLocation = #_sourceLocation
      ) throws {
        #expect(
          try mount.sha256(name) == Digest.ofContent(seed: seed, byteCount: Self.length),
          "\(name)", sourceLocation: sourceLocation)
      }

      /// Ends the mount.
      ///
      /// The daemon must be alive and within its memory limit, and the neighbour unchanged.
      func end(_ mount: Mount, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(mount.process.isRunning, "httpfs has died", sourceLocation: sourceLocation)
        #expect(throws: Never.self, sourceLocation: sourceLocation) { try mount.status() }
        try expectRight(mount, "neighbour/good.bin", sourceLocation: sourceLocation)
        let peak = try mount.peakResidentByteCount
        #expect(peak <= 256 << 20, "\(peak >> 20) MiB", sourceLocation: sourceLocation)
        #expect(try mount.unmount() == .exited(0), sourceLocation: sourceLocation)
      }
    }

    /// The error of `ls` on the directory, which must appear soon.
    private func error(of mount: Mount, _ name: String) throws -> String {
      let result = try run(["ls", "-a", mount.path(name)], within: .seconds(20))
      #expect(!result.succeeded, "\(result.output.prefix(300))")
      return result.error
    }

    private func names(_ mount: Mount, _ name: String = "list") throws -> Set<String> {
      Set(
        try output(of: ["find", mount.path(name), "-mindepth", "1", "-printf", "%y %P\\n"])
          .split(separator: "\n").map(String.init))
    }

    @Test(
      "65 links out, encoded or not, foreign ones, bad names: only children are shown and asked for",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func linksOut(seed: UInt64) throws {
      let server = try HostileServer(seed: seed)
      let other = try OriginServer()
      let own = server.origin.port
      let bad = [
        "..", "../", "../neighbour/good.bin", "%2e%2e", "%2e%2e/", "%2e%2e%2f",
        "%2e%2e%2fneighbour",
        "..%2f..%2fetc%2fpasswd", ".%2e/", ".", "./", "/", "/etc/passwd", "//", "///etc",
        "\\..\\..\\",
        "sub/../../x", "a/b", "a//", "http://127.0.0.1:\(other.port)/data/list/foreign.bin",
        "//127.0.0.1:\(other.port)/data/list/foreign.bin", "https://127.0.0.1:\(own)/data/list/tls",
        "http://user:pw@127.0.0.1:\(own)/data/list/user", "http://[::1]:\(own)/data/list/six",
        "javascript:alert(1)", "JAVASCRIPT:alert(1)", "java\tscript:alert(1)", "data:text/html,x",
        "file:///etc/passwd", "ftp://127.0.0.1/x", "mailto:a@b", "?C=N;O=D", "a?b", "a#b", "#", "",
        " ", "a%00b", "%00", "a%0ab", "a%0d%0aX: y", "a%1b[31m", "%7f", "%ff%fe", "%c0%ae%c0%ae",
        "a&#0;b", "a&#1;b", "a&#x85;b", String(repeating: "n", count: 300),
        String(repeating: "%61", count: 300), "/data/list/../neighbour/x", "/data/list/sub/x",
        "/data/listing", "/DATA/LIST/x", "/data/list", "&#46;&#46;/", "&#x2e;&#x2e;&#x2f;x",
      ]
      let good = ["good.bin", "./a%20b", "/data/list/absolute", "sub/", "100%25", "..."]
      var references = bad + good
      references.shuffle(using: &server.random)
      let html = references.map { "<a href=\"\($0)\">x</a>\n" }.joined()
      try server.list(html, at: "/data/list/")
      try server.list("<a href='../'>up</a><a href='inner.bin'>x</a>", at: "/data/list/sub/")
      let mount = try server.mount()
      var shown = try names(mount)
      // A backslash is an ordinary character here, and is encoded in a URL.
      let backslashes = "\\..\\..\\"
      #expect(shown.remove("f " + backslashes) != nil)
      #expect(
        shown == [
          "f good.bin", "f a b", "f absolute", "d sub", "f sub/inner.bin", "f 100%", "f ...",
        ])
      for name in ["good.bin", "a b", "absolute", "sub/inner.bin", "100%", "..."] {
        try server.expectRight(mount, "list/\(name)")
      }
      for name in ["foreign.bin", "a/b", "%2e%2e/neighbour/good.bin", "passwd", "x", "user", "six"]
      {
        #expect(access(mount.path("list/\(name)"), F_OK) != 0, "\(name)")
      }
      for path in Set(try server.origin.requests().map(\.path)) {
        let names = path.split(separator: "/").dropFirst(2)
        #expect(path.hasPrefix("/data/list/") && !names.contains(".."), "\(path)")
      }
      #expect(try other.requests().isEmpty)
      try server.end(mount)
    }

    @Test(
      "65 200,000 names, 50 MB, a body without end: EIO in bounded memory and time",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func tooMuch(seed: UInt64) throws {
      let server = try HostileServer(seed: seed)
      let mount = try server.mount()
      let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
      let link = "<a href={index}>\n"
      let filler = String(repeating: "x", count: 1000)
      let endless = Int.random(in: 100...5000, using: &server.random)
      for actions: [Any] in [
        [["text": head + "\r\n"], ["repeat": 200_000, "actions": [["text": link]]], "close"],
        [["text": head + "\r\n"], ["repeat": 50_000, "actions": [["text": filler]]], "close"],
        [["text": head + "Content-Length: 50000000\r\n\r\n"], "stall"],
        [
          ["text": head + "Transfer-Encoding: chunked\r\n\r\n"],
          ["repeat": 60_000, "actions": [["text": "400\r\n\(filler)\(filler.prefix(24))\r\n"]]],
          "stall",
        ],
      ] {
        let name = try server.answer(actions)
        #expect(try error(of: mount, name).contains("Input/output error"))
      }
      // A trickle, and silence: the deadline ends both.
      for rest: [Any] in [
        [["rate": endless], ["repeat": 900_000, "actions": [["text": link]]]], ["stall"],
      ] {
        let name = try server.answer([["text": head + "\r\n"]] + rest)
        var message = ""
        let duration = try elapsed { message = try error(of: mount, name) }
        #expect(message.contains("Connection timed out"), "\(message)")
        #expect(duration < .seconds(13), "\(duration)")
      }
      // The maximum number of entries.
      let most = try server.answer([
        ["text": head + "\r\n"], ["repeat": 100_000, "actions": [["text": link]]], "close",
      ])
      #expect(
        try output(of: ["ls", "-f", mount.path(most)]).split(separator: "\n").count >= 100_000)
      try server.end(mount)
    }

    @Test(
      "65 directories that hold themselves: 32 levels, then no more",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func endlessDepth(seed: UInt64) throws {
      let server = try HostileServer(seed: seed)
      try server.list(
        "<a href='loop/'>l</a><a href='x.bin'>x</a><a href='./'>.</a>", at: "/data/list*/")
      let mount = try server.mount()
      let found = try names(mount)
      #expect(found.filter { $0.hasPrefix("d ") }.count == 32)
      #expect(found.filter { $0.hasPrefix("f ") }.count == 33)
      let deepest = String(repeating: "loop/", count: 32) + "x.bin"
      try server.expectRight(mount, "list/\(deepest)")
      // A look-up by name goes no further either.
      #expect(access(mount.path("list/" + String(repeating: "loop/", count: 33)), F_OK) != 0)
      try server.end(mount)
    }

    @Test(
      "65 gzip bombs, broken HTML, garbage, elements without end: nothing bad is shown, nothing breaks",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func garbage(seed: UInt64) throws {
      let server = try HostileServer(seed: seed)
      let bomb = try shell("head -c 50000000 /dev/zero | gzip -9 | base64 -w0")
      let coded = try server.list(
        Data(base64Encoded: bomb) ?? Data(), fields: "Content-Encoding: gzip\r\n")
      let mount = try server.mount()
      #expect(try error(of: mount, coded).contains("Input/output error"))
      // Coded bytes without the header field are no links.
      let raw = try server.list(Data(base64Encoded: bomb) ?? Data())
      #expect(try names(mount, raw).isEmpty)
      for element in ["<div>", "<b>", "<table><tr><td>", "<a href=x>", "<!--", "&#x", "<a href='"] {
        let name = try server.answer([
          ["text": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"],
          [
            "repeat": 4000 / element.utf8.count,
            "actions": [["text": String(repeating: element, count: 1000)]],
          ], "close",
        ])
        let shown = try run(["ls", mount.path(name)], within: .seconds(20))
        #expect(
          Set(shown.output.split(separator: "\n")).isSubset(of: ["x", "<a href="]), "\(element)")
      }
      for broken in [
        "<a href=good.bin", "<a href='good.bin>x</a>", "<a <a href=good.bin>>",
        "<html><a href=good.bin><",
        "<base href='http://127.0.0.1:1/'><a href=bad.bin>", "<a href=good.bin></b></table></html>",
        "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a href='&e;'>x</a><a href=good.bin>",
      ] {
        let name = try server.list(broken)
        let shown = try run(["ls", mount.path(name)], within: .seconds(20)).output
        #expect(
          !shown.contains("bad") && !shown.contains("root:") && !shown.contains("/"), "\(shown)")
      }
      for _ in 0..<20 {
        let count = Int.random(in: 0...20_000, using: &server.random)
        let name = try server.list(
          (0..<count).map { _ in UInt8.random(in: 0...255, using: &server.random) })
        _ = try run(["ls", mount.path(name)], within: .seconds(20))
      }
      for type in ["application/octet-stream", "text/plain", "image/png"] {
        let name = try server.answer([
          [
            "text":
              "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nContent-Length: 10\r\n\r\n<a href=x>"
          ]
        ])
        #expect(try error(of: mount, name).contains("Input/output error"))
      }
      let good = try server.list("<a href='good.bin'>")
      try server.expectRight(mount, good + "/good.bin")
      try server.end(mount)
    }

    @Test(
      "65 a redirect of the listing to another origin: nothing is asked there",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func redirects(seed: UInt64) throws {
      let server = try HostileServer(seed: seed)
      let other = try OriginServer()
      let mount = try server.mount()
      for location in [
        "http://127.0.0.1:\(other.port)/data/list/", "//127.0.0.1:\(other.port)/data/list/",
        "http://localhost:\(server.origin.port)/data/list/", "file:///etc/", "",
        "/data/neighbour/good.bin",
      ] {
        let name = try server.answer([
          ["text": "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n"]
        ])
        #expect(try error(of: mount, name).contains("Input/output error"), "\(location)")
      }
      #expect(try other.requests().isEmpty)
      try server.end(mount)
    }

    @Test(
      "65 httpfs's own names, and a name that is file and directory: the mount's own, and the file",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func ownNames(seed: UInt64) throws {
      let server = try HostileServer(seed: seed)
      var references = [
        ".status", ".status.json", ".control", ".metrics", "%2Estatus", ".status/", "both", "both/",
        "sub/",
      ]
      references.shuffle(using: &server.random)
      try server.list(references.map { "<a href='\($0)'>x</a>" }.joined(), at: "/data/list/")
      try server.list("<a href='.status'>x</a>", at: "/data/list/sub/")
      let mount = try server.sandbox.mount(source: server.url(), options: ["--read-timeout", "8"])
      #expect(try names(mount, "") == ["f both", "d sub", "f sub/.status"])
      #expect(try output(of: ["cat", mount.path(".status")]).contains("httpfs"))
      try server.expectRight(mount, "both")
      try server.expectRight(mount, "sub/.status")
      #expect(try mount.unmount() == .exited(0))
    }
  }
}
