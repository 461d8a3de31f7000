import Foundation
import Glibc
import Testing

/// Programs that read the start of many files: an indexer, a thumbnailer, `file *`.
extension RealMounts {
  @Suite struct Storms {
    private static let fileCount = 60
    private static let fileByteCount: Int64 = 8 << 20

    private func mount(in sandbox: Sandbox, _ origin: OriginServer) throws -> Mount {
      let urls = (0..<Self.fileCount).map {
        origin.url("s\($0).bin", length: Self.fileByteCount, seed: UInt64($0))
          + "&latency=5"
      }
      let list = try sandbox.write(urls.joined(separator: "\n") + "\n", to: "urls.txt")
      return try sandbox.mount(source: list)
    }

    /// Opens each file, reads from its start with typical buffer sizes, and closes it.
    private func readStarts(_ byteCount: Int, below mountpoint: String) throws {
      let script = """
        import os, sys
        for name in sorted(os.listdir(sys.argv[1])):
            if name.startswith("."): continue
            with open(os.path.join(sys.argv[1], name), "rb", buffering=0) as file:
                left = int(sys.argv[2])
                while left > 0:
                    left -= len(file.read(min(left, 65536)))
        """
      try output(of: Python.command(script) + [mountpoint, "\(byteCount)"])
    }

    @Test(arguments: [
      (byteCount: 16 << 10, limit: 128 << 10), (byteCount: 1 << 20, limit: 5 << 20),
    ])
    func `of most files whose starts are looked at, little more than those is fetched`(
      byteCount: Int, limit: Int
    ) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(in: sandbox, origin)
      try readStarts(byteCount, below: mount.mountpoint)
      let ended = try mount.unmount()
      #expect(ended == .exited(0))
      let requests = try origin.requests()
      let perFile = Set(requests.map(\.path)).map { path in
        Int(requests.of(path: path).bodyByteCount)
      }.sorted()
      try #require(perFile.count == Self.fileCount)
      // Not every file: httpfs could not know that the first readers would stop, and on a busy
      // machine it sees some of them close their files late. Any fifth of the files may cost more,
      // and any four of them any amount.
      #expect(perFile[Self.fileCount * 8 / 10] <= limit, "\(perFile)")
      let total = perFile.dropLast(4).reduce(0, +)
      #expect(total / (Self.fileCount - 4) <= limit, "\(perFile)")
    }

    @Test func `file(1) on all files fetches little more than it reads`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(in: sandbox, origin)
      // Without this option, file(1) would read 7 MiB at each end.
      try shell("file -P bytes=65536 \(quoted(mount.mountpoint))/*.bin")
      #expect(try mount.unmount() == .exited(0))
      let mean = try origin.requests().bodyByteCount / Int64(Self.fileCount)
      #expect(mean >= 65536 && mean <= 1 << 20, "\(mean)")
    }

    @Test func `files that are read whole one after the other cost two requests each`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let byteCount: Int64 = 1 << 20
      let files = (0..<10).map {
        RemoteTestFile(name: "w\($0).bin", seed: UInt64($0), byteCount: byteCount)
      }
      let mount = try sandbox.mount(urls: files.map { $0.url(origin, query: "latency=5") })
      for file in files { #expect(try mount.sha256(file.name) == file.digest) }
      #expect(try mount.unmount() == .exited(0))
      let requests = try origin.requests()
      let counts = files.map { requests.of(path: "/data/\($0.name)").count }
      // The first two files must show that files are read to their ends.
      #expect(counts.dropFirst(2).allSatisfy { $0 == 2 }, "\(counts)")
      #expect(try files.allSatisfy { try origin.bodyByteCount(of: $0) == byteCount })
    }

    @Test func `a copy after a storm is right, and all that it reads is fetched once`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(in: sandbox, origin)
      try readStarts(1 << 20, below: mount.mountpoint)
      let digest = Digest.ofContent(seed: 59, byteCount: Self.fileByteCount)
      #expect(try mount.sha256("s59.bin") == digest)
      #expect(try mount.unmount() == .exited(0))
      let requests = try origin.requests().of(path: "/data/s59.bin")
      #expect(requests.distinctBodyByteCount == Self.fileByteCount)
      #expect(
        requests.repeatedByteCount <= (1 << 20) + requests.maximumVainByteCount,
        "\(requests.bodyByteCount)")
    }
  }
}
