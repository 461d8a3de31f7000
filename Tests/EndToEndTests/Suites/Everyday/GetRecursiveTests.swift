import Foundation
import Glibc
import Testing

/// `httpfs get -r`: the files of directory listings, as they are on the server's disk.
extension RealMounts {
  @Suite struct GetRecursive {
    private static let files = [
      "a.iso", "notes.txt", "with space & more/grüße.txt", "with space & more/100%.iso",
      "deep/er/v1.2/a.iso", "deep/er/b.txt", "deep/c.iso",
    ]

    /// Creates the files below `root`, each with other bytes.
    private func makeTree(in sandbox: Sandbox) throws -> String {
      for (index, name) in Self.files.enumerated() {
        let directory = name.split(separator: "/").dropLast().joined(separator: "/")
        _ = try sandbox.makeDirectory("root/" + directory)
        try sandbox.write([UInt8](repeating: UInt8(index), count: 1000 + index), to: "root/" + name)
      }
      return sandbox.path("root")
    }

    /// A workspace, and an nginx that lists the tree; `locations` are of its configuration.
    private func makeServer(
      _ locations: String = ""
    ) throws -> (work: TransferWorkspace, root: String, nginx: NginxServer) {
      let work = try TransferWorkspace()
      let root = try makeTree(in: work.sandbox)
      let nginx = try work.sandbox.nginx(root: root, locations: "autoindex on;\n\(locations)")
      return (work, root, nginx)
    }

    /// The files below a directory of the workspace, in order.
    private func found(_ work: TransferWorkspace, below directory: String) throws -> [String] {
      let path = quoted(work.path(directory))
      return try shell("[ ! -e \(path) ] || find \(path) -type f -printf '%P\\n' | LC_ALL=C sort")
        .split(separator: "\n").map(String.init)
    }

    private func names(_ isWanted: (String) -> Bool) -> [String] {
      Self.files.filter(isWanted).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    // MARK: Files

    @Test(arguments: [ListingServer.Kind.nginx, .apacheTable, .caddy, .python])
    func `the files of a listing and of those below arrive under their relative paths`(
      kind: ListingServer.Kind
    ) throws {
      let work = try TransferWorkspace()
      let root = try makeTree(in: work.sandbox)
      let server = try ListingServer(kind, root: root, in: work.sandbox)
      let result = try work.get("-r", "-o", "out", server.url())
      #expect(result.succeeded, "\(result.error)")
      let difference = try run(["diff", "-r", root, work.path("out")])
      #expect(difference.succeeded, "\(difference.output)\(difference.error)")
      // Without -o, and below a path that needs encoding.
      let part = try work.get("-r", server.url("with%20space%20%26%20more/"))
      #expect(part.succeeded, "\(part.error)")
      #expect(work.names == ["100%.iso", "grüße.txt", "out"])
    }

    @Test func `the same command asks once for each listing and each unchanged file`() throws {
      let (work, _, nginx) = try makeServer()
      #expect(try work.get("-r", "-o", "out", nginx.url("")).succeeded)
      _ = try nginx.takeRequests()
      let again = try work.get("-r", "-o", "out", "--json", nginx.url(""))
      #expect(again.succeeded, "\(again.output)")
      let requests = try nginx.takeRequests()
      #expect(requests.filter { $0.path.hasSuffix("/") }.count == 5)
      let asked = requests.map(\.path).filter { !$0.hasSuffix("/") }
      #expect(asked.sorted() == Self.files.map { "/" + $0 }.sorted())
      let lines = try again.jsonLines()
      let ended = lines.filter { $0["state"] as? String == "finished" }
      #expect(ended.count == Self.files.count)
      #expect(ended.allSatisfy { $0["reason"] as? String == "unchanged" })
      #expect(lines.last?["finished"] as? Int == Self.files.count)
    }

    // MARK: Choice

    @Test func `--include, --exclude and --depth choose by path and by last name`() throws {
      let (work, _, nginx) = try makeServer()
      func get(_ name: String, _ options: String...) throws -> [String] {
        let result = try work.run(["get", "-r", "-o", name] + options + [nginx.url("")])
        #expect(result.succeeded, "\(result.error)")
        return try found(work, below: name)
      }
      #expect(try get("iso", "--include", "*.iso") == names { $0.hasSuffix(".iso") })
      let both = try get("both", "--include", "a.iso", "--include", "deep/*.txt")
      #expect(both == ["a.iso", "deep/er/b.txt", "deep/er/v1.2/a.iso"])
      _ = try nginx.takeRequests()
      #expect(
        try get("shallow", "--exclude", "er", "--exclude", "*.txt") == [
          "a.iso", "deep/c.iso", "with space & more/100%.iso",
        ])
      // An excluded directory is not read.
      #expect(try nginx.takeRequests().allSatisfy { !$0.path.hasPrefix("/deep/er/") })
      #expect(try get("flat", "--depth", "0") == ["a.iso", "notes.txt"])
      #expect(try get("least", "-l", "-9223372036854775808") == ["a.iso", "notes.txt"])
      #expect(try get("one", "--depth", "1") == names { $0.split(separator: "/").count < 3 })
      let none = try work.get("-r", "-o", "none", "--include", "*.zip", nginx.url(""))
      #expect(none.succeeded)
      #expect(none.error.contains("hold no file to download"), "\(none.error)")
    }

    @Test(arguments: [["--include", "*.iso"], ["--depth", "1"], ["-r", "--depth", "33"]])
    func `options that cannot work are refused`(_ options: [String]) throws {
      let work = try TransferWorkspace()
      #expect(try work.run(["get"] + options + ["http://h/"]).ending == .exited(64))
      #expect(try work.get("-r", "-o", "-", "http://h/").ending == .exited(64))
    }

    // MARK: Lists

    @Test func `a directory without -r fails as one file of a list, and alone says what to do`()
      throws
    {
      let (work, _, nginx) = try makeServer()
      let alone = try work.get(nginx.url("deep/"))
      #expect(alone.ending == .exited(1))
      #expect(alone.error.contains("is that of a directory: download its files with -r"))
      let list = try work.sandbox.write(
        "\(nginx.url("deep/"))\n\(nginx.url("a.iso"))\n\(nginx.url("deep/"))\n  out=page.html\n",
        to: "urls.txt")
      let result = try work.get("--json", "-i", list)
      #expect(result.ending == .exited(1), "\(result.error)")
      #expect(work.names == ["a.iso", "page.html"])
      #expect(try nginx.takeRequests().filter { $0.path.hasSuffix("/") }.count == 1)
      let failed = try result.jsonLines().filter { $0["state"] as? String == "failed" }
      #expect(failed.map { $0["name"] as? String } == ["deep/"])
      #expect(failed.first?["error"] as? String == "invalidRequest")
      #expect((failed.first?["reason"] as? String)?.contains("with -r") == true)
    }

    @Test func `many directories without -r fail at once`() throws {
      let work = try TransferWorkspace()
      let list = try work.sandbox.write(
        (0..<50_000).map { "http://127.0.0.1:1/d\($0)/\n" }.joined(), to: "urls.txt")
      let result = try work.get("-q", "-i", list)
      #expect(result.ending == .exited(1))
      #expect(result.errorLines.count == 50_000)
      // Before, 256 failed every 100 ms.
      #expect(result.duration < .seconds(12))
    }

    @Test func `with -r a listing of a list becomes a directory, with the fields of its line`()
      throws
    {
      let (work, _, nginx) = try makeServer(
        "location /deep/ { if ($http_x_key != secret) { return 403; } }")
      let list = try work.sandbox.write(
        """
        \(nginx.url("deep/"))
          out=other
          header=X-Key: secret
        \(nginx.url("with%20space%20%26%20more/"))
        \(nginx.url("a.iso"))

        """, to: "urls.txt")
      let result = try work.get("-r", "-i", list)
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["a.iso", "other", "with space & more"])
      #expect(try found(work, below: "other") == ["c.iso", "er/b.txt", "er/v1.2/a.iso"])
    }

    // MARK: Failures

    /// A server that refuses the directory `deep/er` as long as the file `flag` exists.
    private func closedServer(
      of root: String, in work: TransferWorkspace
    ) throws -> (nginx: NginxServer, flag: String) {
      let flag = try work.sandbox.write("", to: "closed")
      let nginx = try work.sandbox.nginx(
        root: root,
        locations: "autoindex on;\nlocation /deep/er/ { if (-f \(flag)) { return 403; } }")
      return (nginx, flag)
    }

    @Test func `a directory that cannot be read fails as one file, and a session keeps it`() throws
    {
      let work = try TransferWorkspace()
      let root = try makeTree(in: work.sandbox)
      let (nginx, flag) = try closedServer(of: root, in: work)
      let result = try work.get("-r", "-o", "out", "--session", "todo", nginx.url(""))
      #expect(result.ending == .exited(24), "\(result.error)")
      #expect(result.error.contains("out/deep/er/: failed: HTTP 403"), "\(result.error)")
      #expect(try found(work, below: "out") == names { !$0.hasPrefix("deep/er/") })
      #expect(try work.text("todo").contains("\n  out=out//deep/er/\n"))
      let still = try work.get("--session", "todo")
      #expect(still.error.contains("is that of a directory"), "\(still.error)")
      unlink(flag)
      _ = try nginx.takeRequests()
      let again = try work.get("-r", "--session", "todo")
      #expect(again.succeeded, "\(again.error)")
      #expect(try nginx.takeRequests().allSatisfy { $0.path.hasPrefix("/deep/er/") })
      let difference = try run(["diff", "-r", root, work.path("out")])
      #expect(difference.succeeded, "\(difference.output)\(difference.error)")
      #expect(work.names == ["out"])
    }

    @Test func `the files of a directory in a session are compared with --checksum-file`() throws {
      let work = try TransferWorkspace()
      let root = try makeTree(in: work.sandbox)
      let (nginx, flag) = try closedServer(of: root, in: work)
      let sums = work.sandbox.path("sums")
      _ = try shell(
        "cd \(quoted(root)) && find * -type f -exec sha256sum {} + > \(quoted(sums))")
      try work.sandbox.write("other", to: "root/deep/er/b.txt")
      let arguments = ["-r", "-o", "out", "--session", "todo", "--checksum-file", sums]
      let first = try work.run(["get"] + arguments + [nginx.url("")])
      #expect(first.ending == .exited(24), "\(first.error)")
      unlink(flag)
      let second = try work.run(["get"] + arguments + [nginx.url("")])
      #expect(second.ending == .exited(32), "\(second.error)")
      #expect(try !found(work, below: "out").contains("deep/er/b.txt"))
    }

    @Test func `the files of a directory in a session take the header fields of its line`() throws {
      let (work, _, nginx) = try makeServer(
        "location ~ iso$ { if ($http_x_key != new) { return 403; } }")
      for (key, code) in [("old", CInt(24)), ("new", 0)] {
        let list = try work.sandbox.write(
          "\(nginx.url("deep/"))\n  header=X-Key: \(key)\n", to: "list")
        let result = try work.get("-r", "--session", "todo", "-i", list)
        #expect(result.ending == .exited(code), "\(result.error)")
      }
      #expect(work.names == ["deep"])
    }

    @Test func `a listing that leads up, to another server or to no listing fails alone`() throws {
      let other = try ListingServer(
        .nginx, root: try makeTree(in: Sandbox()), in: Sandbox())
      let (work, root, nginx) = try makeServer(
        """
        location = /loop/ { return 302 /; }
        location = /away/ { return 302 \(other.url("deep/")); }
        location = /text/ { default_type text/plain; return 200 text; }
        """)
      for name in ["loop", "away", "text"] {
        try FileManager.default.createDirectory(
          atPath: "\(root)/\(name)", withIntermediateDirectories: true)
      }
      let result = try work.get("-r", "-o", "out", nginx.url(""))
      #expect(result.ending == .exited(1), "\(result.error)")
      for text in [
        "out/loop/: failed: the listing redirects to a directory above it", "out/away/: failed: ",
        "out/text/: failed: no HTML listing, but 'text/plain'",
      ] {
        #expect(result.error.contains(text), "\(result.error)")
      }
      #expect(try found(work, below: "out") == names { _ in true })
    }

    @Test func `names that lead out of the directory or cannot be stored are left out`() throws {
      let (work, root, nginx) = try makeServer(
        "location = /evil/ { default_type text/html; try_files /evil/page =404; }")
      _ = try work.sandbox.makeDirectory("root/evil")
      try work.sandbox.write("good", to: "root/evil/good")
      let links = [
        "good", "..", "../a.iso", "/a.iso", "..%2Fa.iso", "%2e%2e/", "a%00b", ".status", "//h/x",
        "http://127.0.0.1:1/y", "good?C=M", "Thumbs.db", "./good",
      ]
      try work.sandbox.write(
        links.map { "<a href=\"\($0)\">x</a>\n" }.joined(), to: "root/evil/page")
      #expect(FileStatus.byteCount(of: "\(root)/evil/page") ?? 0 > 0)
      let result = try work.get("-r", "-o", "out", nginx.url("evil/"))
      #expect(result.succeeded, "\(result.error)")
      #expect(result.error.contains("names in listings are skipped"), "\(result.error)")
      #expect(try found(work, below: "out") == ["good"])
      #expect(work.names == ["out"])
    }

    /// A server of one page at `/page/`, with these links, which also has each file that they name.
    private func makePage(_ links: [String], _ locations: String = "") throws -> (
      work: TransferWorkspace, nginx: NginxServer
    ) {
      let (work, _, nginx) = try makeServer(
        """
        location = /page/ { default_type text/html; try_files /page/page =404; }
        location ~ ^/page/.*[^/]$ { return 200 text; }
        \(locations)
        """)
      _ = try work.sandbox.makeDirectory("root/page")
      try work.sandbox.write(
        links.map { "<a href=\"\($0)\">x</a>\n" }.joined(), to: "root/page/page")
      return (work, nginx)
    }

    @Test func `names that begin with a dot arrive only if --include says so`() throws {
      let list = "{ default_type text/html; return 200 '<a href=a>x</a><a href=.b>x</a>'; }"
      let (work, nginx) = try makePage(
        ["good", ".profile", ".ssh/", "sub/"],
        "location = /page/.ssh/ \(list)\nlocation = /page/sub/ \(list)")
      func get(_ name: String, _ options: String...) throws -> [String] {
        let result = try work.run(["get", "-r", "-o", name] + options + [nginx.url("page/")])
        #expect(result.succeeded, "\(result.error)")
        let isTold = result.error.contains("names in listings are skipped: ")
        #expect(isTold == ["plain", "star"].contains(name), "\(result.error)")
        return try found(work, below: name)
      }
      #expect(try get("plain") == ["good", "sub/a"])
      #expect(try nginx.takeRequests().allSatisfy { !$0.path.contains("/.") })
      // The patterns of the shell's users do not mean such names.
      #expect(try get("star", "--include", "*") == ["good", "sub/a"])
      #expect(try get("part", "--include", ".ssh/a") == [".ssh/a"])
      #expect(
        try get("all", "--include", "*", "--include", ".*") == [
          ".profile", ".ssh/.b", ".ssh/a", "good", "sub/.b", "sub/a",
        ])
    }

    @Test func `a directory that several URLs lead to is fetched once`() throws {
      let (work, root, nginx) = try makeServer("location = /alias/ { return 302 /deep/; }")
      try FileManager.default.createDirectory(
        atPath: "\(root)/alias", withIntermediateDirectories: true)
      let result = try work.get("-r", "-o", "out", nginx.url(""))
      #expect(result.succeeded, "\(result.error)")
      #expect(try found(work, below: "out") == names { _ in true })
      // The directory of a URL is that of its files, also if it lies below another.
      let both = try work.get("-r", "-o", "both", nginx.url("deep/"), nginx.url("deep/er/"))
      #expect(both.succeeded, "\(both.error)")
      #expect(try found(work, below: "both") == ["b.txt", "c.iso", "v1.2/a.iso"])
    }

    @Test func `a name of two listings fails as one file, and a session does not keep it`() throws {
      let (work, nginx) = try makePage(["good"])
      _ = try work.sandbox.makeDirectory("root/other")
      try work.sandbox.write("other", to: "root/other/good")
      let result = try work.get(
        "-r", "-o", "out", "--session", "todo", nginx.url("page/"), nginx.url("other/"),
        nginx.url("a.iso"))
      #expect(result.ending == .exited(73), "\(result.error)")
      #expect(
        result.error.contains("out/good: failed: another URL has the same name here"),
        "\(result.error)")
      #expect(try found(work, below: "out") == ["a.iso", "good"])
      #expect(try work.text("out/good") == "other")
      #expect(work.names == ["out"])
    }

    @Test func `a listing that names the session fails that file alone`() throws {
      let (work, nginx) = try makePage(["good", "todo"])
      let result = try work.get("-r", "--session", "todo", nginx.url("page/"))
      #expect(result.ending == .exited(73), "\(result.error)")
      #expect(result.error.contains("cannot be the session"), "\(result.error)")
      #expect(work.names == ["good"])
    }

    @Test func `Ctrl-C and --max-time end the reading of listings`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.post(["match": ["path": "/data/list/"], "actions": ["stall"]])
      let url = "http://127.0.0.1:\(origin.port)/data/list/"
      let result = try work.get("-r", "--max-time", "1s", url)
      #expect(result.ending == .exited(2), "\(result.error)")
      #expect(result.error.contains("--max-time"), "\(result.error)")
      let json = try work.get("-r", "--json", "--max-time", "1s", url)
      #expect(json.ending == .exited(2), "\(json.error)")
      #expect(try json.jsonLines().map { $0["event"] as? String } == ["summary"])
      func isAsked() -> Bool { (try? origin.activeRequestCount()) ?? 0 > 0 }
      #expect(Deadline(after: .seconds(20)).wait { !isAsked() })
      let process = try work.start("get", "-r", url)
      #expect(Deadline(after: .seconds(20)).wait { isAsked() })
      process.signal(SIGINT)
      #expect(process.wait(within: .seconds(10)) == .exited(130))
    }
  }
}
