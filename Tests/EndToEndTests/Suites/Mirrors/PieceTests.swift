import Foundation
import Glibc
import Testing

/// Hashes of pieces in a mount: no reader ever gets a wrong byte.
extension RealMounts {
  @Suite(.timeLimit(.minutes(4))) struct MountedPieces {
    private static let file = RemoteTestFile(name: "p.bin", seed: 321, byteCount: 20_000_000)
    private static let piece: Int64 = 1 << 20

    private func mount(
      _ sandbox: Sandbox, _ origins: [OriginServer], query: String = "", stated: Int64? = nil,
      options: [String] = []
    ) throws -> Mount {
      let document = PieceMetalink(
        file: Self.file, pieceByteCount: Self.piece,
        urls: origins.map { Self.file.url($0, query: query) }, statedByteCount: stated)
      let source = try sandbox.write(document.text, to: "\(UUID().uuidString).meta4")
      return try sandbox.mount(source: source, options: options)
    }

    /// Makes the server send other bytes, with the same head, for requests that include the byte
    /// `offset`.
    private func lie(_ origin: OriginServer, at offset: Int64? = nil) throws {
      var match: [String: Any] = ["path": "/data/*"]
      if let offset { match["range"] = "\(offset)-\(offset)" }
      try origin.post([
        "match": match, "name": "culprit",
        "actions": ["head", ["content": ["first", "last"], "version": 2] as [String: Any]] as [Any],
      ])
    }

    private func expected(at offset: Int64, _ byteCount: Int64) -> HeldFile.Reading {
      .bytes(
        count: Int(byteCount),
        sha256: Digest.ofContent(seed: Self.file.seed, offset: offset, byteCount: byteCount))
    }

    @Test func `pieces of two servers make the file`() throws {
      let sandbox = try Sandbox()
      let origins = try [OriginServer(), OriginServer()]
      let mount = try mount(sandbox, origins, query: "total-rate=12m")
      #expect(try mount.sha256(Self.file.name) == Self.file.digest)
      for origin in origins { #expect(try origin.bodyByteCount(of: Self.file) > 2 << 20) }
      let sent = try origins.reduce(0) { try $0 + $1.bodyByteCount(of: Self.file) }
      #expect(sent < Self.file.byteCount * 3 / 2)
    }

    @Test func `a random read fetches its piece and little more`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, [origin])
      let held = try HeldFile(mount.path(Self.file.name))
      #expect(try held.read(at: 7_000_000, 4096) == expected(at: 7_000_000, 4096))
      held.close()
      #expect(try origin.bodyByteCount(of: Self.file) <= 3 * Self.piece)
      #expect(try mount.status(of: Self.file.name).cachedByteCount % Self.piece == 0)
    }

    @Test(arguments: [0, 1])
    func `a lying server is found, named and not asked again; no reader sees its bytes`(
      place: Int
    ) throws {
      let sandbox = try Sandbox()
      let origins = try [OriginServer(), OriginServer()]
      try lie(origins[place])
      let mount = try mount(sandbox, origins, query: "total-rate=12m")
      #expect(try mount.sha256(Self.file.name) == Self.file.digest)
      let mirrors = try #require(try mount.status(of: Self.file.name).mirrors)
      #expect(
        mirrors.map(\.state) == (place == 0 ? ["refused", "verified"] : ["verified", "refused"]))
      #expect(mirrors[place].reason?.contains("wrong bytes") == true)
      let text = try output(of: ["cat", mount.path(".status")], within: .seconds(5))
      #expect(text.contains("is not asked again: it has sent wrong bytes"))
      #expect(try origins[place].bodyByteCount(of: Self.file) < Self.file.byteCount * 3 / 4)
    }

    @Test func `a lying single server: EIO in the wrong piece, and all others are right`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let wrong = 5 * Self.piece + 17
      try lie(origin, at: wrong)
      let mount = try mount(sandbox, [origin], options: ["--read-timeout", "20"])
      let held = try HeldFile(mount.path(Self.file.name))
      #expect(try held.read(at: wrong, 4096, within: .seconds(30)) == .failed("EIO"))
      let far = 12 * Self.piece
      #expect(try held.read(at: far, 65536) == expected(at: far, 65536))
      #expect(try mount.status(of: Self.file.name).lastError?.contains("checksum") == true)
      held.close()
      // The server is repaired, and a later open notices it.
      try origin.post(["remove": "culprit"])
      #expect(try mount.sha256(Self.file.name) == Self.file.digest)
    }

    @Test func `verified pieces outlive an unmount, and nothing of them travels again`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let first = try mount(sandbox, [origin])
      #expect(try first.sha256(Self.file.name) == Self.file.digest)
      #expect(try first.unmount() == .exited(0))
      try origin.clearLog()
      let second = try mount(sandbox, [origin])
      #expect(try second.sha256(Self.file.name) == Self.file.digest)
      #expect(try origin.bodyByteCount(of: Self.file) < 4096)
      #expect(try second.status(of: Self.file.name).state == "complete")
    }

    @Test(arguments: [3, 9, 15])
    func `kill -9 in a download leaves no byte that was not hashed`(mebibytes: Int64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // One response has other bytes.
      try origin.post([
        "match": ["path": "/data/*", "requests": ["from": 3], "times": 1] as [String: Any],
        "actions": ["head", ["content": ["first", "last"], "version": 2] as [String: Any]] as [Any],
      ])
      let first = try mount(
        sandbox, [origin], query: "rate=8m", options: ["--connections", "4"])
      let reader = try sandbox.start(["sha256sum", first.path(Self.file.name)])
      let reached = try first.waitForStatus(of: Self.file.name, within: .seconds(60)) {
        $0.cachedByteCount >= mebibytes << 20
      }
      #expect(reached)
      try first.crash()
      reader.kill()
      try origin.post(["clear": true])
      try origin.clearLog()
      let second = try mount(sandbox, [origin], query: "rate=8m")
      #expect(try second.sha256(Self.file.name) == Self.file.digest)
      #expect(
        try origin.bodyByteCount(of: Self.file) < Self.file.byteCount * 5 / 4 - (mebibytes << 20))
    }

    @Test func `a server that contradicts the stated length is not read from`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try mount(sandbox, [origin], stated: Self.file.byteCount + 1)
      let result = try run(["cat", mount.path(Self.file.name)], within: .seconds(20))
      #expect(result.error.contains("Input/output error"))
      let status = try mount.status(of: Self.file.name)
      #expect(status.lastError?.contains("but the list says") == true)
    }
  }
}
