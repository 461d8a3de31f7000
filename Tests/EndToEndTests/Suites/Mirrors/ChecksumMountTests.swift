import Foundation
import Glibc
import Testing

/// Checksums of whole files in a mount.
extension RealMounts {
  @Suite(.timeLimit(.minutes(3))) struct MountedChecksums {
    private static let file = RemoteTestFile(name: "c.bin", seed: 311, byteCount: 6 << 20)

    private func mount(
      _ sandbox: Sandbox, _ urls: [String], checksum: String, options: [String] = []
    ) throws -> Mount {
      let list = "\(urls.joined(separator: "\t"))\n  checksum=sha-256=\(checksum)\n"
      let source = try sandbox.write(list, to: "\(UUID().uuidString).txt")
      return try sandbox.mount(source: source, options: options)
    }

    private func attribute(_ name: String, of path: String) throws -> String? {
      let result = try run(
        ["getfattr", "--absolute-names", "--only-values", "-n", name, path], within: .seconds(10))
      return result.succeeded ? result.output : nil
    }

    /// Whether the attribute gets the value in time.
    private func waitForDigest(_ digest: String, of path: String) throws -> Bool {
      try Deadline(after: .seconds(20)).wait(every: .milliseconds(50)) {
        try attribute("user.httpfs.sha256", of: path) == digest
      }
    }

    @Test func `a right whole shows its digest, and in a later mount without being hashed again`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = Self.file
      let first = try mount(sandbox, [file.url(origin)], checksum: file.digest)
      #expect(try attribute("user.httpfs.sha256", of: first.path(file.name)) == nil)
      #expect(try first.sha256(file.name) == file.digest)
      #expect(try waitForDigest(file.digest, of: first.path(file.name)))
      try first.unmount()
      let second = try mount(sandbox, [file.url(origin)], checksum: file.digest)
      // The record provides it before any file is opened.
      #expect(try attribute("user.httpfs.sha256", of: second.path(file.name)) == file.digest)
      #expect(try second.sha256(file.name) == file.digest)
      try second.unmount()
      // The record is valid only for that checksum.
      let other = Digest.ofContent(seed: 1, byteCount: 10)
      let third = try mount(sandbox, [file.url(origin)], checksum: other)
      #expect(try attribute("user.httpfs.sha256", of: third.path(file.name)) == nil)
    }

    @Test(
      .enabled(if: Host.isRoot, "needs root: the kernel allows passthrough to CAP_SYS_ADMIN only"),
      .enabled(if: Host.kernelHasPassthrough, "needs Linux 6.9 for FUSE passthrough"))
    func `a whole is passed through once its checksum is known to be right`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = Self.file
      try #require(Host.isOrdinaryFileSystem(sandbox.directory))
      let mount = try mount(sandbox, [file.url(origin)], checksum: file.digest)
      #expect(try mount.sha256(file.name) == file.digest)
      #expect(try waitForDigest(file.digest, of: mount.path(file.name)))
      // The file is passed through once it is committed.
      let isPassedThrough = try Deadline(after: .seconds(20)).wait {
        let held = try HeldFile(mount.path(file.name))
        defer { held.close() }
        return try mount.status(of: file.name).passthrough
      }
      #expect(isPassedThrough)
    }

    @Test func `a wrong whole of the only server is EIO as soon as that is known`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = Self.file
      let wrong = Digest.ofContent(seed: 312, byteCount: file.byteCount)
      let mount = try mount(sandbox, [file.url(origin)], checksum: wrong)
      let held = try HeldFile(mount.path(file.name))
      // The bytes read before the check are not known to be wrong.
      _ = try run(["cat", mount.path(file.name)], within: .seconds(30))
      let isKnown = try mount.waitForStatus(of: file.name) {
        $0.lastError?.contains("checksum mismatch") == true
      }
      #expect(isKnown)
      #expect(try mount.status(of: file.name).cachedByteCount == 0)
      // Reads also fail on an earlier handle, and although the kernel has had the page.
      let isRefused = try Deadline(after: .seconds(10)).wait {
        try held.read(at: 0, 4096) == .failed("EIO")
      }
      #expect(isRefused)
      let again = try run(["cat", mount.path(file.name)], within: .seconds(30))
      #expect(again.error.contains("Input/output error"))
      #expect(try origin.bodyByteCount(of: file) < 2 * file.byteCount)
    }

    @Test func `a wrong whole is fetched again from a server that has the right one`() throws {
      let sandbox = try Sandbox()
      let culprit = try OriginServer()
      let honest = try OriginServer()
      let file = Self.file
      // The same validators, other bytes.
      try culprit.post([
        "match": ["path": "/data/*"],
        "actions": ["head", ["content": ["first", "last"], "version": 2] as [String: Any]] as [Any],
      ])
      let mount = try mount(
        sandbox, [file.url(culprit), file.url(honest)], checksum: file.digest,
        options: ["--connections", "1"])
      _ = try run(["cat", mount.path(file.name)], within: .seconds(30))
      let isKnown = try mount.waitForStatus(of: file.name) {
        $0.lastError?.contains("checksum mismatch") == true
      }
      #expect(isKnown)
      let isRight = try Deadline(after: .seconds(30)).wait(every: .milliseconds(100)) {
        try mount.sha256(file.name) == file.digest
      }
      #expect(isRight)
      #expect(try waitForDigest(file.digest, of: mount.path(file.name)))
      #expect(try mount.sha256(file.name) == file.digest)
    }
  }
}
