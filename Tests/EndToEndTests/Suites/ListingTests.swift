import Foundation
import Glibc
import Testing

/// Mounted directories that a server lists: names, sizes and bytes match the server's disk.
extension RealMounts {
  @Suite struct Listings {
    /// Names that are difficult in URLs, HTML and shells.
    private static let names = [
      "plain.txt", "with space.txt", "grüße.txt", "漢字.bin", "100%.txt", "%41.txt", "a#b.txt",
      "what?.txt", "a&b.txt", "a&amp;b.txt", "a+b.txt", "single'quote.txt", "double\"quote.txt",
      "semi;colon", "a:b.txt", "<tag>.txt", "~tilde", "[brackets].txt", "(parens)", "x=y,z", "@at",
      "trailing.", "no-extension", String(repeating: "long", count: 50) + ".txt", "empty.bin",
    ]

    /// Creates a directory with all of them, and with nested directories.
    private func makeTree(in sandbox: Sandbox) throws -> String {
      let root = try sandbox.makeDirectory("root")
      for directory in ["", "sub/", "sub/with space & more/", "ünter/100%/"] {
        _ = try sandbox.makeDirectory("root/" + directory)
        for (index, name) in Self.names.enumerated() {
          let byteCount = name == "empty.bin" ? 0 : 10 + index * 997
          try sandbox.write(
            [UInt8](
              repeating: UInt8(truncatingIfNeeded: index + directory.count), count: byteCount),
            to: "root/" + directory + name)
        }
      }
      _ = try sandbox.makeDirectory("root/empty directory")
      return root
    }

    /// The output of find(1) for a tree: kinds, lengths of files, names.
    private func inventory(of directory: String) throws -> String {
      let files = "find \(quoted(directory)) -type f -printf 'f %s %P\\n'"
      let others = "find \(quoted(directory)) -mindepth 1 -not -type f -printf '%y %P\\n'"
      return try shell("{ \(files); \(others); } | LC_ALL=C sort")
    }

    private func digest(ofFile path: String) throws -> String {
      String(try output(of: ["sha256sum", path]).drop { $0 == "\\" }.prefix(64))
    }

    @Test(arguments: ListingServer.Kind.allCases)
    func `a server's directories are mounted as they are on its disk`(
      kind: ListingServer.Kind
    ) throws {
      let sandbox = try Sandbox()
      let root = try makeTree(in: sandbox)
      let server = try ListingServer(kind, root: root, in: sandbox)
      let mount = try sandbox.mount(source: server.url())
      #expect(try inventory(of: mount.mountpoint) == inventory(of: root))
      let difference = try run(["diff", "-r", root, mount.mountpoint])
      #expect(difference.succeeded, "\(difference.output)\(difference.error)")
      // The file is also found by a name that was not listed before, but not by an invalid name.
      let other = try sandbox.mount(source: server.url("sub/"), cache: "cache2")
      let path = "with space & more/what?.txt"
      #expect(
        try other.sha256(path) == digest(ofFile: "\(root)/sub/\(path)"))
      let missing = try run(["cat", other.path("with space & more/none")])
      #expect(missing.error.contains("No such file or directory"), "\(missing.error)")
      #expect(try other.unmount() == .exited(0))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `ls of a thousand files costs one request, and nothing at all within the TTL`()
      throws
    {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      for index in 0..<1000 {
        try sandbox.write([UInt8](repeating: 7, count: index), to: "root/file \(index).bin")
      }
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let mount = try sandbox.mount(source: nginx.url(""))
      let names = try output(of: ["ls", mount.mountpoint]).split(separator: "\n")
      #expect(names.count == 1000)
      #expect(try nginx.takeRequests().map(\.path) == ["/"])
      #expect(try inventory(of: mount.mountpoint) == inventory(of: root))
      // nginx lists exact lengths; it is still asked for an empty file.
      #expect(try nginx.takeRequests().map(\.path) == ["/file 0.bin"])
      #expect(
        try mount.sha256("file 999.bin") == digest(ofFile: "\(root)/file 999.bin"))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `with --no-listing-sizes each file is asked for its length`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      for index in 0..<20 {
        try sandbox.write([UInt8](repeating: 7, count: 100 + index), to: "root/\(index).bin")
      }
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let mount = try sandbox.mount(source: nginx.url(""), options: ["--no-listing-sizes"])
      #expect(try inventory(of: mount.mountpoint) == inventory(of: root))
      #expect(try nginx.takeRequests().count == 21)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `names that desktops look for everywhere ask no server and are not shown`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      for name in ["a.txt", "desktop.ini", "Thumbs.db", "secret.txt"] {
        try sandbox.write("text", to: "root/\(name)")
      }
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let mount = try sandbox.mount(source: nginx.url(""), options: ["--no-index", "secret.txt"])
      for name in [
        ".Trash", ".Trash-1000", ".hidden", "autorun.inf", "desktop.ini", "Thumbs.db", "secret.txt",
      ] {
        errno = 0
        #expect(access(mount.path(name), F_OK) == -1 && errno == ENOENT, "\(name)")
      }
      #expect(try nginx.takeRequests().isEmpty)
      #expect(try output(of: ["ls", mount.mountpoint]) == "a.txt\n")
      #expect(try nginx.takeRequests().map(\.path) == ["/"])
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `a file that only the listing described is the same one when it is opened`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      try sandbox.write([UInt8](repeating: 7, count: 5000), to: "root/a.bin")
      try output(of: ["touch", "-d", "2024-02-29 12:34:56 UTC", "\(root)/a.bin"])
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let mount = try sandbox.mount(source: nginx.url(""))
      // Calls stat by the name, opens, then calls fstat and stat again.
      let script = """
        import os, sys
        def facts(status): print(status.st_ino, status.st_size, int(status.st_mtime))
        facts(os.stat(sys.argv[1]))
        with open(sys.argv[1], "rb") as file:
            facts(os.fstat(file.fileno()))
            assert file.read() == bytes([7]) * 5000
        facts(os.stat(sys.argv[1]))
        """
      let lines = try output(of: Python.command(script) + [mount.path("a.bin")])
        .split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
      try #require(lines.count == 3)
      #expect(Set(lines.map { $0[0] }).count == 1, "\(lines)")
      #expect(lines.map { $0[1] } == ["5000", "5000", "5000"])
      // The time is exact to the minute at first, and then to the second.
      #expect(lines.map { $0[2] } == ["1709210040", "1709210096", "1709210096"])
      // cp compares the numbers itself.
      #expect(try run(["cp", mount.path("a.bin"), sandbox.path("copy")]).succeeded)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(arguments: [3000, 9000])
    func `a listing that is wrong about a length is not believed by those who open`(
      byteCount: Int
    ) throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      try sandbox.write([UInt8](repeating: 7, count: 5000), to: "root/a.bin")
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let mount = try sandbox.mount(source: nginx.url(""))
      #expect(try output(of: ["stat", "-c", "%s", mount.path("a.bin")]) == "5000\n")
      try sandbox.write([UInt8](repeating: 8, count: byteCount), to: "root/a.bin")
      #expect(try mount.sha256("a.bin") == digest(ofFile: "\(root)/a.bin"))
      #expect(try output(of: ["stat", "-c", "%s", mount.path("a.bin")]) == "\(byteCount)\n")
      #expect(try run(["cp", mount.path("a.bin"), sandbox.path("copy")]).succeeded)
      #expect(try digest(ofFile: sandbox.path("copy")) == digest(ofFile: "\(root)/a.bin"))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `what comes and goes on the server does so on the mount after the TTL`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      try sandbox.write("old", to: "root/old.txt")
      try sandbox.write("stays", to: "root/stays.txt")
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let mount = try sandbox.mount(source: nginx.url(""), options: ["--listing-ttl", "1"])
      #expect(try output(of: ["cat", mount.path("stays.txt")]) == "stays")
      #expect(try output(of: ["ls", mount.mountpoint]) == "old.txt\nstays.txt\n")
      try sandbox.write("new", to: "root/new.txt")
      try FileManager.default.removeItem(atPath: "\(root)/old.txt")
      let isThere = try Deadline(after: .seconds(10)).wait(every: .milliseconds(100)) {
        try output(of: ["ls", mount.mountpoint]) == "new.txt\nstays.txt\n"
      }
      #expect(isThere)
      #expect(try output(of: ["cat", mount.path("new.txt")]) == "new")
      #expect(access(mount.path("old.txt"), F_OK) != 0)
      // The kept file is the previous one: none of it is fetched twice.
      #expect(try output(of: ["cat", mount.path("stays.txt")]) == "stays")
      #expect(try nginx.takeRequests().of(path: "/stays.txt").bodyByteCount == 5)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `a server that is gone does not take the names away, nor what is cached`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      try sandbox.write("cached", to: "root/cached.txt")
      try sandbox.write("other", to: "root/other.txt")
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let mount = try sandbox.mount(
        source: nginx.url(""), options: ["--listing-ttl", "1", "--read-timeout", "5"])
      #expect(try output(of: ["cat", mount.path("cached.txt")]) == "cached")
      nginx.stop()
      pause(for: .seconds(2))
      #expect(try output(of: ["ls", mount.mountpoint]) == "cached.txt\nother.txt\n")
      #expect(try output(of: ["cat", mount.path("cached.txt")]) == "cached")
      #expect(try run(["cat", mount.path("other.txt")]).succeeded == false)
      #expect(mount.process.standardError.contains("may be out of date"))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `a directory that fails says why by its errno, and its neighbours do not`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      for name in ["good", "gone", "closed", "broken", "plain"] {
        _ = try sandbox.makeDirectory("root/\(name)")
        try sandbox.write(name, to: "root/\(name)/file.txt")
      }
      let nginx = try sandbox.nginx(
        root: root,
        locations: """
          autoindex on;
          location /gone/ { return 404; }
          location /closed/ { return 403; }
          location /broken/ { return 500; }
          location /plain/ { default_type text/plain; return 200 "<a href=x>"; }
          """)
      let mount = try sandbox.mount(source: nginx.url(""), options: ["--read-timeout", "2"])
      #expect(try output(of: ["ls", mount.path("good")]) == "file.txt\n")
      for (name, message) in [
        ("gone", "No such file"), ("closed", "Permission denied"), ("broken", "Input/output error"),
        ("plain", "Input/output error"),
      ] {
        let result = try run(["ls", mount.path(name)], within: .seconds(20))
        #expect(result.error.contains(message), "\(name): \(result.error)")
      }
      #expect(try output(of: ["cat", mount.path("good/file.txt")]) == "good")
      #expect(try mount.unmount() == .exited(0))
      // No server listens there.
      nginx.stop()
      let dead = try sandbox.mount(source: nginx.url(""), options: ["--read-timeout", "5"])
      let result = try run(["ls", dead.mountpoint], within: .seconds(20))
      #expect(result.error.contains("Input/output error"), "\(result.error)")
      #expect(try dead.unmount() == .exited(0))
    }

    @Test func `many who look at once make one request`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let page = "<a href='a.bin'>a</a>"
      try origin.post([
        "match": ["path": "/data/list/"],
        "actions": [
          ["delay": 700],
          [
            "text": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
              + "Content-Length: \(page.utf8.count)\r\n\r\n\(page)"
          ],
        ],
      ])
      let mount = try sandbox.mount(source: "http://127.0.0.1:\(origin.port)/data/list/")
      let readers = try (0..<8).map { _ in try sandbox.start(["ls", mount.mountpoint]) }
      for reader in readers {
        #expect(reader.wait(within: .seconds(20)) == .exited(0))
        #expect(reader.standardOutput == "a.bin\n")
      }
      #expect(try origin.requests().count == 1)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `a listing with a tag is asked for by it, and 304 leaves all as it is`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let page = "<a href='a.bin'>a</a>"
      try origin.post([
        "match": ["path": "/data/list/"], "name": "first",
        "actions": [
          [
            "text": "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"one\"\r\n"
              + "Content-Length: \(page.utf8.count)\r\n\r\n\(page)"
          ]
        ],
      ])
      try origin.post([
        "match": ["path": "/data/list/", "fields": ["If-None-Match": "\"one\""]], "name": "again",
        "actions": [["text": "HTTP/1.1 304 Not Modified\r\nETag: \"one\"\r\n\r\n"]],
      ])
      let mount = try sandbox.mount(
        source: "http://127.0.0.1:\(origin.port)/data/list/", options: ["--listing-ttl", "1"])
      let isAskedAgain = try Deadline(after: .seconds(20)).wait(every: .milliseconds(300)) {
        #expect(try output(of: ["ls", mount.mountpoint]) == "a.bin\n")
        return try origin.requests().map(\.rule).contains("again")
      }
      #expect(isAskedAgain)
      #expect(try origin.requests().filter { $0.rule == "first" }.count == 1)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `a URL's credentials open its listing and all below it, and are not shown`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      var features = ServerFeatures()
      features.credentials = .init(user: "jo", password: "canary")
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;", features: features)
      let directory = "\(nginx.writable.root)/private/deep"
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true)
      try Data("secret".utf8).write(to: URL(fileURLWithPath: directory + "/file.txt"))
      let url = nginx.url("private/")
      let mount = try sandbox.mount(
        source: url.replacingOccurrences(of: "//", with: "//jo:canary@"),
        options: ["--log-level", "trace"])
      #expect(try output(of: ["cat", mount.path("deep/file.txt")]) == "secret")
      let status = try output(of: ["cat", mount.path(".status"), mount.path(".status.json")])
      #expect(!status.contains("canary") && !mount.process.standardError.contains("canary"))
      #expect(try mount.unmount() == .exited(0))
      let refused = try sandbox.mount(source: url, cache: "cache2")
      #expect(try run(["ls", refused.mountpoint]).error.contains("Permission denied"))
      #expect(try refused.unmount() == .exited(0))
    }

    @Test func `a listing that does not come holds up nobody else, and ends with the mount`() throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      try origin.post(["match": ["path": "/data/list/"], "actions": ["stall"]])
      let mount = try sandbox.mount(urls: [
        "http://127.0.0.1:\(origin.port)/data/list/", origin.url("a.bin", length: 1000, seed: 4),
      ])
      let killed = try sandbox.start(["ls", mount.path("list")])
      let waiting = try sandbox.start(["cat", mount.path("list/x")])
      pause(for: .milliseconds(300))
      #expect(killed.isRunning && waiting.isRunning)
      #expect(try mount.sha256("a.bin") == Digest.ofContent(seed: 4, byteCount: 1000))
      #expect(try output(of: ["ls", mount.mountpoint], within: .seconds(5)) == "a.bin\nlist\n")
      #expect(try elapsed { _ = try mount.status() } < .seconds(2))
      killed.signal(SIGINT)
      #expect(killed.wait(within: .seconds(30)) != nil)
      mount.process.signal(SIGTERM)
      #expect(waiting.wait(within: .seconds(10)) != nil)
      #expect(mount.process.wait(within: .seconds(10)) == .exited(0))
    }

    @Test func `a list holds files and listings, with names, headers and credentials`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      _ = try sandbox.makeDirectory("root/pub/deep")
      try sandbox.write("one", to: "root/pub/one.txt")
      try sandbox.write("two", to: "root/pub/deep/two.txt")
      let nginx = try sandbox.nginx(
        root: root,
        locations: """
          autoindex on;
          location /key/ {
            alias \(root)/pub/;
            if ($http_x_key != "opensesame") { return 403; }
          }
          """)
      let list = try sandbox.write(
        """
        \(nginx.url("pub/one.txt"))
        \(nginx.url("pub/"))
        \(nginx.url("pub/"))
         out=named/here
        \(nginx.url("pub/"))
         dir=below
        \(nginx.url("key/"))
         header=X-Key: opensesame
        \(nginx.url("key/"))
         out=keyless
        \(nginx.url(""))

        """, to: "urls.txt")
      let host = "127.0.0.1:\(nginx.port)"
      let shown = try output(of: [try Products.httpfs, "list", list])
      #expect(
        shown.split(separator: "\n").filter { !$0.hasPrefix(" ") }
          .map { $0.prefix { $0 != "\t" } }
          == ["one.txt", "pub/", "named/here/", "below/pub/", "key/", "keyless/", "\(host)/"])
      let mount = try sandbox.mount(source: list)
      #expect(mount.process.standardOutput.contains("(1 file, 6 listings)"))
      for path in [
        "one.txt", "pub/one.txt", "named/here/one.txt", "below/pub/one.txt", "key/one.txt",
        "\(host)/pub/one.txt",
      ] {
        #expect(try output(of: ["cat", mount.path(path)]) == "one", "\(path)")
      }
      for path in ["pub/deep/two.txt", "key/deep/two.txt", "\(host)/pub/deep/two.txt"] {
        #expect(try output(of: ["cat", mount.path(path)]) == "two", "\(path)")
      }
      let refused = try run(["ls", mount.path("keyless")])
      #expect(refused.error.contains("Permission denied"), "\(refused.error)")
      // The status has only the files that were looked up.
      #expect(try mount.status().files.count == 9)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `what a list's URL has cached is found through a listing, and the reverse`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      for name in ["a b.bin", "c.bin"] {
        try sandbox.write([UInt8](repeating: 3, count: 300_000), to: "root/\(name)")
      }
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let listed = try sandbox.mount(urls: [nginx.url("a%20b.bin")])
      _ = try listed.sha256("a b.bin")
      #expect(try listed.unmount() == .exited(0))
      _ = try nginx.takeRequests()

      let mount = try sandbox.mount(source: nginx.url(""))
      let digest = try digest(ofFile: "\(root)/c.bin")
      #expect(try mount.sha256("a b.bin") == digest)
      #expect(try nginx.takeRequests().filter { $0.path != "/" }.bodyByteCount == 0)
      #expect(try mount.sha256("c.bin") == digest)
      #expect(try mount.unmount() == .exited(0))
      _ = try nginx.takeRequests()

      let again = try sandbox.mount(urls: [nginx.url("c.bin")])
      #expect(try again.sha256("c.bin") == digest)
      #expect(try nginx.takeRequests().bodyByteCount == 0)
      #expect(try again.unmount() == .exited(0))
    }

    @Test func `a redirect within the server is followed, one to another is not`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      _ = try sandbox.makeDirectory("root/v2")
      try sandbox.write("two", to: "root/v2/file.txt")
      let other = try sandbox.nginx(root: root, locations: "autoindex on;")
      let nginx = try sandbox.nginx(
        root: root,
        locations: """
          autoindex on;
          location = /latest/ { return 302 /v2/; }
          location = /page/ { return 302 /v2/file.txt; }
          location = /away/ { return 302 \(other.url("v2/")); }
          """)
      let list = ["latest", "away", "page"].map { nginx.url("\($0)/") }
      let mount = try sandbox.mount(urls: list)
      #expect(try output(of: ["cat", mount.path("latest/file.txt")]) == "two")
      for name in ["away", "page"] {
        let result = try run(["ls", mount.path(name)])
        #expect(result.error.contains("Input/output error"), "\(name): \(result.error)")
      }
      #expect(try other.takeRequests().isEmpty)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `a list that is read again may gain and lose listings`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      for name in ["a", "b"] {
        _ = try sandbox.makeDirectory("root/\(name)")
        try sandbox.write(name, to: "root/\(name)/file.txt")
      }
      let nginx = try sandbox.nginx(root: root, locations: "autoindex on;")
      let list = try sandbox.write(nginx.url("a/") + "\n", to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      #expect(try output(of: ["cat", mount.path("a/file.txt")]) == "a")
      try sandbox.write("\(nginx.url("a/"))\n\(nginx.url("b/"))\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      let isThere = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
        try run(["cat", mount.path("b/file.txt")]).output == "b"
      }
      #expect(isThere)
      try sandbox.write("\(nginx.url("b/"))\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      let isGone = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
        try output(of: ["ls", mount.mountpoint]) == "b\n"
      }
      #expect(isGone)
      #expect(try mount.unmount() == .exited(0))
    }
  }
}
