import Foundation
import Glibc
import Testing

/// `httpfs cache`: shows, verifies, repairs and removes the cached files of mounts.
extension RealMounts {
  @Suite(.timeLimit(.minutes(2))) struct CacheCommand {
    private static let files = [
      RemoteTestFile(name: "a.bin", seed: 1, byteCount: 3 << 20),
      RemoteTestFile(name: "b.bin", seed: 2, byteCount: 4 << 20),
      RemoteTestFile(name: "c.iso", seed: 3, byteCount: 2 << 20),
    ]
    /// The bytes that a mount may fetch of a cached file: a first range, the last block.
    private static let slack: Int64 = 64 << 10

    /// A cache with whole files and without a mount.
    private struct Cache {
      let sandbox: Sandbox
      let origin: OriginServer
      /// The cache directory.
      let path: String

      init() throws {
        sandbox = try Sandbox()
        origin = try OriginServer()
        path = sandbox.path("cache")
        for file in CacheCommand.files {
          let mount = try mount([file])
          #expect(try mount.sha256(file.name) == file.digest)
          #expect(try mount.waitForStatus(of: file.name) { $0.cachedByteCount == file.byteCount })
          #expect(try mount.unmount() == .exited(0))
          // The uses are more than a second apart, so `ls` shows their order.
          pause(for: .milliseconds(1100))
        }
      }

      func mount(_ files: [RemoteTestFile]) throws -> Mount {
        try sandbox.mount(urls: files.map { $0.url(origin) })
      }

      /// Runs `httpfs cache VERB` on the directory to its end.
      func run(_ verb: String, _ arguments: String...) throws -> CommandResult {
        try EndToEndTests.run(
          [try Products.httpfs, "cache", verb, "--cache-dir", path] + arguments,
          environment: ["LC_ALL": "C.UTF-8", "TZ": "UTC"], within: .seconds(30))
      }

      /// The output of `ls --json`.
      func listing() throws -> Listing {
        let result = try run("ls", "--json")
        guard result.succeeded else { throw HarnessError(result.error) }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Listing.self, from: Data(result.output.utf8))
      }

      /// The names of the files that `ls` shows, in its order.
      func names() throws -> [String] {
        try listing().files.map(\.name)
      }

      /// The only file in the entry of `file` whose name starts with `prefix`.
      func path(_ prefix: String, of file: RemoteTestFile) throws -> String {
        let key = try listing().files.first { $0.name == file.name }?.key ?? "none"
        let directory = "\(path)/v1/files/\(key.prefix(2))/\(key.dropFirst(2))"
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        guard let name = names.first(where: { $0.hasPrefix(prefix) }) else {
          throw HarnessError("no \(prefix) in \(directory)")
        }
        return "\(directory)/\(name)"
      }

      /// Inverts one bit of the cached bytes of `file`.
      func flipBit(of file: RemoteTestFile, at offset: Int64) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path("data-", of: file)))
        defer { try? handle.close() }
        try handle.seek(toOffset: UInt64(offset))
        guard let byte = try handle.read(upToCount: 1)?.first else {
          throw HarnessError("no byte at \(offset)")
        }
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: [byte ^ 0x10])
      }
    }

    /// The document of `ls --json`, whose names are in snake case.
    private struct Listing: Decodable {
      struct File: Decodable {
        let key: String
        let source: String?
        let state: String
        let length: Int64?
        let presentBytes: Int64?
        let allocatedBytes: Int64
        let lastUse: Int

        var name: String {
          String((source ?? "").prefix { $0 != "?" }.split(separator: "/").last ?? "")
        }
      }

      let directory: String
      let inUseBy: Int32?
      let files: [File]
    }

    // MARK: ls

    @Test func `ls shows what mounts have cached, the last used first, and no secret`() throws {
      let cache = try Cache()
      let listing = try cache.listing()
      #expect(listing.directory == cache.path)
      #expect(listing.inUseBy == nil)
      #expect(listing.files.map(\.name) == ["c.iso", "b.bin", "a.bin"])
      let now = Int(Date().timeIntervalSince1970)
      for (file, shown) in zip(Self.files.reversed(), listing.files) {
        #expect(shown.state == "readable")
        #expect(shown.length == file.byteCount)
        #expect(shown.presentBytes == file.byteCount)
        #expect(shown.allocatedBytes >= file.byteCount)
        #expect((now - 120...now).contains(shown.lastUse))
      }
      let text = try cache.run("ls")
      #expect(text.succeeded, "\(text.error)")
      let lines = text.output.split(separator: "\n")
      #expect(lines.count == 4, "\(text.output)")
      #expect(lines.first?.contains("2 MiB / 2 MiB ") == true, "\(text.output)")
      #expect(lines.first?.hasSuffix("/data/c.iso?…") == true, "\(text.output)")
      #expect(lines.last?.hasPrefix("3 files, 9 MiB present, ") == true, "\(text.output)")
      #expect(!text.output.contains("seed="))
    }

    @Test func `a cache in use is shown with its user, and refused to every other verb`() throws {
      let cache = try Cache()
      let mount = try cache.mount([Self.files[0]])
      let holder = mount.process.processID
      #expect(try cache.listing().inUseBy == holder)
      #expect(try cache.run("ls").output.hasSuffix(", in use by process \(holder)\n"))
      for arguments in [
        ["verify"], ["evict", "a.bin"], ["evict", "--to", "1M"], ["clear", "--yes"],
      ] {
        let result = try run(
          [try Products.httpfs, "cache"] + arguments + ["--cache-dir", cache.path],
          within: .seconds(10))
        #expect(result.ending == .exited(1), "\(arguments)")
        #expect(
          result.error
            == "httpfs: \(cache.path): the cache is in use by process \(holder), mounted at "
            + "\(mount.mountpoint); unmount it, or name another directory with --cache-dir\n")
      }
      #expect(try mount.sha256("a.bin") == Self.files[0].digest)
      #expect(try mount.unmount() == .exited(0))
      #expect(try cache.listing().files.count == 3)
      #expect(try cache.listing().inUseBy == nil)
    }

    // MARK: verify

    @Test func `verify finds exactly the damaged file, and repair costs exactly its block`() throws
    {
      let cache = try Cache()
      let intact = try cache.run("verify")
      #expect(intact.succeeded, "\(intact.error)")
      #expect(intact.output == "3 files, 9 MiB: all intact\n")

      let damaged = Self.files[1]
      try cache.flipBit(of: damaged, at: 2_500_000)
      let record = try CacheRecord(path: cache.path("record", of: damaged))
      let block = try #require(
        record.extents.first {
          ($0.offset..<$0.offset + $0.byteCount).contains(2_500_000)
        })
      let found = try cache.run("verify")
      #expect(found.ending == .exited(1))
      let lines = found.output.split(separator: "\n").map(String.init)
      #expect(lines.count == 2, "\(found.output)")
      #expect(
        lines.first?.hasSuffix(
          "/data/b.bin?…: \(block.byteCount) of \(damaged.byteCount) bytes are damaged") == true,
        "\(found.output)")
      // Intact files verify if they are named alone; damage in other files is not found.
      #expect(try cache.run("verify", "a.bin", "*.iso").succeeded)
      #expect(try cache.run("verify", damaged.url(cache.origin)).ending == .exited(1))
      #expect(try CacheRecord(path: cache.path("record", of: damaged)).extents == record.extents)

      #expect(try cache.run("verify", "--repair", "*.bin").ending == .exited(1))
      #expect(try cache.run("verify").succeeded)
      let listing = try cache.listing()
      #expect(
        listing.files.first { $0.name == "b.bin" }?.presentBytes
          == damaged.byteCount - block.byteCount)
      try cache.origin.clearLog()
      let mount = try cache.mount(Self.files)
      for file in Self.files { #expect(try mount.sha256(file.name) == file.digest) }
      let fetched = try cache.origin.bodyByteCount(of: damaged)
      #expect(fetched >= block.byteCount)
      #expect(fetched <= block.byteCount + Self.slack)
      for file in [Self.files[0], Self.files[2]] {
        #expect(try cache.origin.bodyByteCount(of: file) <= Self.slack)
      }
      #expect(try mount.unmount() == .exited(0))
      #expect(try cache.run("verify").succeeded)
    }

    // MARK: evict

    @Test func `evict removes what is named, and no other file`() throws {
      let cache = try Cache()
      let unknown = try cache.run("evict", "nothing.bin")
      #expect(unknown.ending == .exited(1))
      #expect(unknown.error.contains("no cached file is called 'nothing.bin'"), "\(unknown.error)")
      #expect(try cache.run("evict", "a.*").succeeded)
      #expect(try cache.names() == ["c.iso", "b.bin"])
      #expect(try cache.run("evict", Self.files[2].url(cache.origin)).succeeded)
      #expect(try cache.names() == ["b.bin"])
      // With another query, it is another file.
      let other = RemoteTestFile(name: "b.bin", seed: 9, byteCount: 4 << 20)
      #expect(try cache.run("evict", other.url(cache.origin)).ending == .exited(1))
      try cache.origin.clearLog()
      let mount = try cache.mount(Self.files)
      for file in Self.files { #expect(try mount.sha256(file.name) == file.digest) }
      #expect(try cache.origin.bodyByteCount(of: Self.files[1]) <= Self.slack)
      for file in [Self.files[0], Self.files[2]] {
        #expect(try cache.origin.bodyByteCount(of: file) >= file.byteCount)
      }
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `evict --to leaves what was used last`() throws {
      let cache = try Cache()
      #expect(try cache.run("evict", "--to", "1G").output.hasPrefix("removed 0 files, 0 B, "))
      let result = try cache.run("evict", "--to", "7M")
      #expect(result.succeeded, "\(result.error)")
      #expect(result.output.hasPrefix("removed 1 file, 3"), "\(result.output)")
      #expect(try cache.names() == ["c.iso", "b.bin"])
      #expect(try cache.listing().files.reduce(0) { $0 + $1.allocatedBytes } <= 7 << 20)
      #expect(try cache.run("evict").ending == .exited(EX_USAGE))
      #expect(try cache.run("evict", "--to", "1M", "b.bin").ending == .exited(EX_USAGE))
    }

    // MARK: clear

    @Test func `clear asks, removes all that httpfs has written, and nothing else`() throws {
      let cache = try Cache()
      let unasked = try cache.run("clear")
      #expect(unasked.ending == .exited(1))
      #expect(unasked.error.contains("add --yes"), "\(unasked.error)")
      for (answer, code) in [("n\r", Int32(1)), ("\r", 1), ("y\r", 0)] {
        let count = try cache.names().count
        #expect(count == 3)
        let notes = [
          "\(cache.path)/notes.txt",
          (try cache.path("record", of: Self.files[0]) as NSString).deletingLastPathComponent
            + "/notes.txt",
        ]
        for path in notes { try Data("mine".utf8).write(to: URL(fileURLWithPath: path)) }
        let terminal = try Terminal(
          [try Products.httpfs, "cache", "clear", "--cache-dir", cache.path])
        #expect(terminal.waitForOutput("Remove 3 files, 9 MiB, from"), "\(terminal.output)")
        try terminal.type(answer)
        #expect(terminal.wait(within: .seconds(10)) == .exited(code), "\(terminal.output)")
        if code == 0 {
          #expect(try cache.names().isEmpty)
          #expect(notes.allSatisfy { FileManager.default.fileExists(atPath: $0) })
        }
      }
      for name in ["record", "data-"] {
        let left = try shell("find \(quoted(cache.path)) -name '\(name)*' | wc -l")
        #expect(left.split(separator: "\n").first == "0", "\(name)")
      }
      #expect(try cache.run("verify").output == "0 files, 0 B: all intact\n")
      let mount = try cache.mount([Self.files[0]])
      #expect(try mount.sha256("a.bin") == Self.files[0].digest)
      #expect(try mount.unmount() == .exited(0))
      #expect(try cache.run("clear", "--yes").succeeded)
      #expect(try cache.names().isEmpty)
    }

    @Test func `a directory that is no cache is refused and left alone`() throws {
      let sandbox = try Sandbox()
      let home = try sandbox.makeDirectory("home")
      try sandbox.write("mine", to: "home/file.txt")
      for path in [home, sandbox.path("missing")] {
        for arguments in [["ls"], ["verify"], ["evict", "*"], ["clear", "--yes"]] {
          let result = try run(
            [try Products.httpfs, "cache"] + arguments + ["--cache-dir", path],
            within: .seconds(10))
          #expect(result.ending == .exited(1))
          #expect(
            result.error
              == "httpfs: \(path): no cache is here; "
              + "name the directory that a mount uses with --cache-dir\n")
        }
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: home) == ["file.txt"])
      #expect(!FileManager.default.fileExists(atPath: sandbox.path("missing")))
    }
  }
}
