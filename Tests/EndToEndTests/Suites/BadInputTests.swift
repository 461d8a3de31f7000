import Foundation
import Glibc
import Testing

/// Sources that cannot be mounted are refused in one line, without a mount.
extension RealMounts {
  @Suite struct BadInput {
    /// A list that must be refused.
    struct BadList: CustomTestStringConvertible {
      let name: String
      let bytes: [UInt8]
      /// What the message must contain, such as the line's number.
      let mentions: [String]

      init(_ name: String, _ text: String, mentions: [String] = []) {
        self.init(name, Array(text.utf8), mentions: mentions)
      }

      init(_ name: String, _ bytes: [UInt8], mentions: [String] = []) {
        self.name = name
        self.bytes = bytes
        self.mentions = mentions
      }

      var testDescription: String { name }
    }

    static let badLists = [
      BadList("empty list", ""),
      BadList("only comments", "# nothing\n\n"),
      BadList("not a URL", "http://127.0.0.1:9/a\nthis is no URL\n", mentions: [":2:"]),
      BadList(
        "a scheme that is not HTTP", "http://127.0.0.1:9/a\nfile:///etc/passwd\n", mentions: [":2:"]
      ),
      BadList("no host", "http:///a\n", mentions: [":1:"]),
      BadList(
        "two files of one name", "http://127.0.0.1:9/x/a\n\nhttp://127.0.0.1:9/y/a\n",
        mentions: [":3:", "a"]),
      BadList(
        "a file that is also a directory",
        "http://127.0.0.1:9/1\n out=a\nhttp://127.0.0.1:9/2\n out=a/b\n"),
      BadList(".. in out=", "http://127.0.0.1:9/a\n out=../b\n", mentions: [":2:"]),
      BadList(".. in dir=", "http://127.0.0.1:9/a\n dir=x/../../y\n", mentions: [":2:"]),
      BadList("an absolute out=", "http://127.0.0.1:9/a\n out=/etc/b\n", mentions: [":2:"]),
      BadList("a reserved name", "http://127.0.0.1:9/a\n out=.status\n", mentions: [":2:"]),
      BadList(
        "NUL in a line", Array("http://127.0.0.1:9/a\nhttp://127.0.0.1:9/".utf8) + [0, 98, 10],
        mentions: [":2:"]),
      BadList(
        "bytes that are not UTF-8", Array("http://127.0.0.1:9/".utf8) + [0xff, 0xfe, 10],
        mentions: [":1:"]),
      BadList(
        "a name over 255 bytes",
        "http://127.0.0.1:9/a\n out=\(String(repeating: "n", count: 256))\n", mentions: [":2:"]),
      BadList(
        "a line over 64 KiB", "http://127.0.0.1:9/\(String(repeating: "p", count: 70_000))\n",
        mentions: [":1:"]),
      BadList("an option before any URL", " out=a\nhttp://127.0.0.1:9/a\n", mentions: [":1:"]),
      BadList("a header without a name", "http://127.0.0.1:9/a\n header=: x\n", mentions: [":2:"]),
      BadList(
        "a checksum of a wrong length", "http://127.0.0.1:9/a\n checksum=sha-256=abcd\n",
        mentions: [":2:"]),
      BadList("a URL without a name", "http://127.0.0.1:9/?x\n", mentions: [":1:", "out="]),
      BadList(
        "a file below a listing", "http://127.0.0.1:9/d/\nhttp://127.0.0.1:9/a\n out=d/a\n",
        mentions: [":2:", "line 1", "listing"]),
      BadList(
        "a checksum of a listing",
        "http://127.0.0.1:9/d/\n checksum=md5=d41d8cd98f00b204e9800998ecf8427e\n",
        mentions: [":2:", "listing"]),
    ]

    @Test(arguments: badLists)
    func `a bad list is refused with its line`(list: BadList) throws {
      let sandbox = try Sandbox()
      let path = try sandbox.write(list.bytes, to: "bad.txt")
      let result = try mountRun(sandbox, [path, try sandbox.makeDirectory("mnt")])
      expectRefusal(
        result, sandbox, mentions: list.mentions.map { $0.hasPrefix(":") ? "bad.txt\($0)" : $0 })
    }

    @Test func `every bad line is named, and the message holds no secret`() throws {
      let sandbox = try Sandbox()
      let path = try sandbox.write(
        "ftp://user:hunter2@host/a?token=hunter2\nhttp://127.0.0.1:9/b\n out=../hunter\n",
        to: "bad.txt")
      let result = try mountRun(sandbox, [path, try sandbox.makeDirectory("mnt")])
      #expect(result.ending == .exited(1))
      #expect(!result.error.contains("hunter2"), "\(result.error)")
      #expect(!isAnythingMounted(sandbox))
    }

    @Test(arguments: ["http:/", "http:///", "https:////", "http:", ""])
    func `a URL with a slash too few or too many is named without its password`(
      scheme: String
    ) throws {
      let sandbox = try Sandbox()
      let source = "\(scheme)user:hunter2@host/x"
      let result = try mountRun(sandbox, [source, try sandbox.makeDirectory("mnt")])
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("host/x") || result.error.contains("malformed URL"))
      #expect(!result.error.contains("hunter2"), "\(result.error)")
    }

    @Test func `a list that is not there is named`() throws {
      let sandbox = try Sandbox()
      let missing = sandbox.path("no-such-list.txt")
      let result = try mountRun(sandbox, [missing, try sandbox.makeDirectory("mnt")])
      expectRefusal(result, sandbox, mentions: [missing])
    }

    @Test func `a mount point that is missing or no directory is named`() throws {
      let sandbox = try Sandbox()
      let list = try sandbox.write("http://127.0.0.1:9/a\n", to: "urls.txt")
      let missing = sandbox.path("no-such-directory")
      expectRefusal(try mountRun(sandbox, [list, missing]), sandbox, mentions: [missing])
      let file = try sandbox.write("x", to: "file")
      expectRefusal(try mountRun(sandbox, [list, file]), sandbox, mentions: [file])
    }

    @Test func `a mount point that already has an httpfs mount is refused`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("a.bin", length: 10, seed: 1)])
      let result = try run(
        [try Products.httpfs, "mount", "--cache-dir", sandbox.path("other-cache")]
          + [origin.url("b.bin", length: 10, seed: 1), mount.mountpoint], within: .seconds(20))
      #expect(result.ending == .exited(1))
      expectOneLine(result, mentions: [mount.mountpoint])
      // The first mount is unaffected.
      #expect(try output(of: ["ls", mount.mountpoint]) == "a.bin\n")
      #expect(
        MountTable.entries().filter { $0.mountpoint == mount.mountpoint }.count == 1)
    }

    @Test func `a cache directory below a file, or a symbolic link, is refused`() throws {
      let sandbox = try Sandbox()
      let list = try sandbox.write("http://127.0.0.1:9/a\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let file = try sandbox.write("x", to: "file")
      expectRefusal(
        try run([try Products.httpfs, "mount", "--cache-dir", file + "/cache", list, mountpoint]),
        sandbox, mentions: [file])
      let link = sandbox.path("link")
      try FileManager.default.createSymbolicLink(
        atPath: link, withDestinationPath: try sandbox.makeDirectory("target"))
      expectRefusal(
        try run([try Products.httpfs, "mount", "--cache-dir", link, list, mountpoint]),
        sandbox, mentions: [link])
    }

    @Test func `a cache directory in use by another mount is refused, naming its process`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 10, seed: 1)
      let mount = try sandbox.mount(urls: [url])
      let result = try run(
        [try Products.httpfs, "mount", "--cache-dir", mount.cacheDirectory, url]
          + [try sandbox.makeDirectory("second")], within: .seconds(20))
      #expect(result.ending == .exited(1))
      expectOneLine(
        result, mentions: [String(mount.process.processID), mount.mountpoint, "--cache-dir"])
      #expect(MountTable.httpfs(at: sandbox.path("second")) == nil)
    }

    @Test func `a cache of a mount that another mount namespace hides is refused at once`() throws {
      try #require(Host.isRoot, "needs root, for a namespace of its own")
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 10, seed: 1)
      let mount = try sandbox.mount(urls: [url])
      let start = ContinuousClock.now
      let result = try run(
        MountNamespace.launcher(script: "exec \"$@\"")
          + [try Products.httpfs, "mount", "--cache-dir", mount.cacheDirectory, url]
          + [try sandbox.makeDirectory("second")], within: .seconds(20))
      #expect(result.ending == .exited(1))
      #expect(result.error.contains(mount.mountpoint), "\(result.error)")
      // A mount that is ending would be waited for, for 8 s.
      #expect(ContinuousClock.now - start < .seconds(5))
    }

    @Test func `a mount that waits for the cache of an ending one ends on a signal`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 10, seed: 1)
      let mount = try sandbox.mount(urls: [url])
      // The first process lives as long as the file is open.
      let file = try HeldFile(mount.path("a.bin"))
      defer { file.close() }
      try output(of: ["fusermount3", "-u", "-z", mount.mountpoint])
      let second = try sandbox.start(
        [try Products.httpfs, "mount", "--cache-dir", mount.cacheDirectory, url]
          + [try sandbox.makeDirectory("second")])
      pause(for: .seconds(1))
      second.signal(SIGTERM)
      // Without the signal, it would end with exit code 1 after 8 s.
      #expect(second.wait(within: .seconds(5)) == .exited(143))
    }

    @Test func `without /dev/fuse the message says so`() throws {
      try #require(Host.isRoot, "needs root, to hide /dev/fuse in a namespace of its own")
      let sandbox = try Sandbox()
      let list = try sandbox.write("http://127.0.0.1:9/a\n", to: "urls.txt")
      let script = "mount -t tmpfs none /dev && exec \"$@\" < /proc/self/fd/3"
      let result = try run(
        MountNamespace.launcher(script: "exec 3<&0; " + script)
          + [try Products.httpfs, "mount", "--cache-dir", sandbox.path("cache")]
          + [list, try sandbox.makeDirectory("mnt")],
        within: .seconds(20))
      #expect(result.ending == .exited(1))
      expectOneLine(result, mentions: ["/dev/fuse"])
    }

    @Test(arguments: [
      ["mount"], ["mount", "one"], ["mount", "--no-such-option", "a", "b"], ["no-such-command"],
      ["mount", "--connections", "many", "a", "b"], ["mount", "--read-timeout", "-3", "a", "b"],
      ["rate-limit"],
    ])
    func `bad usage exits with 64`(arguments: [String]) throws {
      let result = try run([try Products.httpfs] + arguments, within: .seconds(10))
      #expect(result.ending == .exited(64), "\(result.error)")
      #expect(!result.error.isEmpty)
    }

    @Test func `an unknown option of the list warns, and the list is mounted`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [
        origin.url("a.bin", length: 1000, seed: 2) + "\n no-such-option=1\n out=renamed.bin"
      ])
      #expect(try output(of: ["ls", mount.mountpoint]) == "renamed.bin\n")
      #expect(try mount.sha256("renamed.bin") == Digest.ofContent(seed: 2, byteCount: 1000))
      #expect(mount.process.standardError.contains("no-such-option"))
    }

    // MARK: -

    private func mountRun(_ sandbox: Sandbox, _ arguments: [String]) throws -> CommandResult {
      try run(
        [try Products.httpfs, "mount", "--cache-dir", sandbox.path("cache")] + arguments,
        within: .seconds(20))
    }

    private func expectRefusal(
      _ result: CommandResult, _ sandbox: Sandbox, mentions: [String],
      sourceLocation: SourceLocation = #_sourceLocation
    ) {
      #expect(result.ending == .exited(1), sourceLocation: sourceLocation)
      expectOneLine(result, mentions: mentions, sourceLocation: sourceLocation)
      #expect(!isAnythingMounted(sandbox), sourceLocation: sourceLocation)
    }

    private func expectOneLine(
      _ result: CommandResult, mentions: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) {
      let lines = result.error.split(separator: "\n")
      #expect(lines.count == 1, "\(result.error)", sourceLocation: sourceLocation)
      #expect(result.error.hasPrefix("httpfs: "), "\(result.error)", sourceLocation: sourceLocation)
      for mention in mentions {
        #expect(
          result.error.contains(mention), "'\(mention)' in: \(result.error)",
          sourceLocation: sourceLocation)
      }
    }

    private func isAnythingMounted(_ sandbox: Sandbox) -> Bool {
      MountTable.entries().contains { $0.mountpoint.hasPrefix(sandbox.directory) }
    }
  }
}
