import Glibc
import Testing

/// Lists of many files: the cache keeps what a walk has learned, whenever the mount ends.
extension RealMounts {
  @Suite struct LongLists {
    private static let length: Int64 = 1 << 20

    private func urls(of count: Int, at origin: OriginServer) -> [String] {
      (0..<count).map { origin.url("f\($0).bin", length: Self.length, seed: UInt64($0)) }
    }

    /// Mounts `list`, lists it with all lengths, and ends the mount at once.
    ///
    /// - Returns: how many names had the right length.
    private func walk(
      _ list: String, _ sandbox: Sandbox, mountpoint: String, cache: String,
      launcher: [String] = []
    ) throws -> Int {
      let mount = sandbox.adopt(
        try Mount(
          source: list, mountpoint: try sandbox.makeDirectory(mountpoint),
          cacheDirectory: sandbox.path(cache), launcher: launcher))
      let lines = try output(of: ["ls", "-l", mount.mountpoint], within: .seconds(120))
        .split(separator: "\n")
      try end(mount)
      return lines.count { $0.contains(" \(Self.length) ") }
    }

    private func end(_ mount: Mount) throws {
      mount.process.signal(SIGTERM)
      #expect(mount.process.wait(within: .seconds(30)) == .exited(0))
    }

    @Test func `names that look the same and differ in their bytes are two files`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let names = ["\u{E9}", "e\u{301}", "d/\u{301}x", "d/e\u{301}", "d/\u{E9}"]
      let lines = names.enumerated().map { index, name in
        origin.url("f\(index).bin", length: Self.length, seed: UInt64(index)) + "\n out=\(name)\n"
      }
      let mount = sandbox.adopt(
        try Mount(
          source: try sandbox.write(lines.joined(), to: "list.txt"),
          mountpoint: try sandbox.makeDirectory("mnt"), cacheDirectory: sandbox.path("cache")))
      for (index, name) in names.enumerated() {
        let digest = try output(of: ["sha256sum", mount.path(name)]).prefix(64)
        #expect(digest == Digest.ofContent(seed: UInt64(index), byteCount: Self.length))
      }
      #expect(try output(of: ["ls", mount.path("d")]).split(separator: "\n").count == 3)
      try end(mount)
    }

    @Test func `the second mount asks nothing, though there are fewer descriptors than files`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let count = 500
      let list = try sandbox.write(
        urls(of: count, at: origin).joined(separator: "\n") + "\n", to: "urls.txt")
      // Half of the descriptors are for files that no process has opened, and no checkpoint frees
      // them so soon.
      let launcher = ["bash", "-c", "ulimit -n 300 && exec \"$@\"", "bash"]
      for round in 0..<3 {
        let cache = "cache\(round)"
        let first = try walk(
          list, sandbox, mountpoint: "first\(round)", cache: cache, launcher: launcher)
        #expect(first == count)
        try origin.clearLog()
        let second = try walk(
          list, sandbox, mountpoint: "second\(round)", cache: cache, launcher: launcher)
        #expect(second == count)
        #expect(try origin.requests().map(\.path) == [])
      }
    }

    @Test func `an answer that a reader has seen is kept, though the mount ends before its body`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      try origin.post(["match": "/data/*", "actions": ["head", ["delay": 150], "body"]])
      let source = origin.url("f.bin", length: Self.length, seed: 1)
      for round in 0..<3 {
        for _ in 0..<2 {
          try origin.clearLog()
          let mount = try sandbox.mount(source: source, cache: "cache\(round)")
          #expect(
            try output(of: ["stat", "--format=%s", mount.path("f.bin")]) == "\(Self.length)\n")
          try end(mount)
        }
        #expect(try origin.requests().map(\.path) == [])
      }
    }

    @Test func `names are found in directories of any depth, and listed once`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let paths = ["b/c/3", "a", "b/1", "é/ü", "b/c/d/4", "b-", "b/c/2", "ab/a"]
      let list = try sandbox.write(
        paths.map {
          origin.url("x.bin", length: Self.length, seed: 1) + "\n  out=\($0)\n"
        }.joined(), to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      let found = try shell("cd \(quoted(mount.mountpoint)) && find . -type f -size 1M | sort")
      let names = found.split(separator: "\n").map { String($0.dropFirst(2)) }
      #expect(Set(names) == Set(paths) && names.count == paths.count, "\(names)")
      for wrong in ["b/c/1", "c", "b/a", "a/b", "b/c/d/4/5"] {
        #expect(try !run(["stat", mount.path(wrong)]).succeeded, "\(wrong)")
      }
      #expect(try output(of: ["ls", mount.path("b")]) == "1\nc\n")
    }
  }
}
