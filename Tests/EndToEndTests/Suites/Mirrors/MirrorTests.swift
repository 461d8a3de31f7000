import Foundation
import Glibc
import Testing

/// Several URLs for one file.
extension RealMounts {
  @Suite(.timeLimit(.minutes(4))) struct Mirrors {
    private static let file = RemoteTestFile(name: "m.bin", seed: 301, byteCount: 24 << 20)

    /// One file on two servers.
    private struct Pair {
      let sandbox: Sandbox
      let first: OriginServer
      let second: OriginServer

      init() throws {
        sandbox = try Sandbox()
        first = try OriginServer()
        second = try OriginServer()
      }

      /// Mounts `file` with the URL of the first server before that of the second one.
      func mount(
        _ file: RemoteTestFile = Mirrors.file, query: String = "", second other: String? = nil,
        options: [String] = []
      ) throws -> Mount {
        let line = [file.url(first, query: query), other ?? file.url(second, query: query)]
        return try sandbox.mount(urls: [line.joined(separator: "\t")], options: options)
      }
    }

    @Test func `a server that is dead from the start costs no read`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      try TestContent.write(to: "\(root)/d.bin", seed: 302, byteCount: 8 << 20)
      let nginx = try sandbox.nginx(root: root)
      let dead = "http://127.0.0.1:\(try FreePort.next())/d.bin"
      let mount = try sandbox.mount(urls: ["\(dead)\t\(nginx.url("d.bin"))"])
      let digest = Digest.ofContent(seed: 302, byteCount: 8 << 20)
      #expect(try mount.sha256("d.bin", within: .seconds(20)) == digest)
      let mirrors = try #require(try mount.status(of: "d.bin").mirrors)
      #expect(mirrors.map(\.state) == ["resting", "verified"])
      #expect(mirrors.first?.reason?.contains("refused") == true)
    }

    @Test func `the redirects of every server are remembered`() throws {
      let pair = try Pair()
      let file = Self.file
      let target = try #require(
        file.url(pair.second).addingPercentEncoding(withAllowedCharacters: .alphanumerics))
      let redirecting = pair.second.url(
        "r.bin", length: file.byteCount, seed: 301, query: "redirect=\(target)")
      let dead = "http://127.0.0.1:\(try FreePort.next())/m.bin"
      let mount = try pair.sandbox.mount(urls: ["\(dead)\t\(redirecting)\n  out=\(file.name)"])
      let handle = try HeldFile(mount.path(file.name))
      for place in (0..<12).reversed() {
        let offset = Int64(place) << 21
        let digest = Digest.ofContent(seed: 301, offset: offset, byteCount: 4096)
        #expect(try handle.read(at: offset, 4096) == .bytes(count: 4096, sha256: digest))
      }
      let requests = try pair.second.requests()
      let redirectCount = requests.count { $0.status == 302 }
      #expect(redirectCount <= 2, "of \(requests.count) requests")
      #expect(requests.count - redirectCount >= 8)
    }

    @Test func `a new version is found behind the redirects of every server`() throws {
      let pair = try Pair()
      let length = Self.file.byteCount
      func redirect(toSeed seed: UInt64) throws {
        for server in [pair.first, pair.second] {
          let target = server.url("v\(seed).bin", length: length, seed: seed)
          try server.control("/data/m.bin", ["redirect": target])
        }
      }
      func holds(_ file: HeldFile, at offset: Int64, seed: UInt64) throws -> Bool {
        let digest = Digest.ofContent(seed: seed, offset: offset, byteCount: 4096)
        return try file.read(at: offset, 4096) == .bytes(count: 4096, sha256: digest)
      }
      try redirect(toSeed: 301)
      let mount = try pair.mount(options: ["--revalidate", "1s"])
      let old = try HeldFile(mount.path(Self.file.name))
      for place in 0..<6 { #expect(try holds(old, at: Int64(place) << 22, seed: 301)) }
      try redirect(toSeed: 302)
      sleep(2)
      // The old version is still served where both servers last led.
      let new = try HeldFile(mount.path(Self.file.name))
      #expect(try holds(new, at: 0, seed: 302))
      pair.first.stop()
      for place in (1..<6).reversed() {
        #expect(try holds(new, at: Int64(place) << 22, seed: 302))
      }
    }

    @Test(arguments: ["status=404", "status=403", "status=503", "fault=stall-head", "fault=reset"])
    func `a server that does not give the file is passed over before an error is given`(
      fault: String
    ) throws {
      let pair = try Pair()
      let file = Self.file
      let line = [file.url(pair.first, query: fault), file.url(pair.second)]
      let mount = try pair.sandbox.mount(
        urls: [line.joined(separator: "\t")], options: ["--read-timeout", "30"])
      #expect(try mount.sha256(file.name, within: .seconds(40)) == file.digest)
    }

    @Test func `all servers say that there is no file, and so does the mount`() throws {
      let pair = try Pair()
      let mount = try pair.mount(query: "status=404")
      let result = try run(["cat", mount.path(Self.file.name)], within: .seconds(20))
      #expect(result.error.contains("No such file"))
      #expect(try mount.status(of: Self.file.name).lastError?.contains("HTTP 404") == true)
    }

    @Test func `a server that dies in a read is replaced by the other one`() throws {
      let pair = try Pair()
      let mount = try pair.mount(query: "total-rate=4m")
      let reader = try pair.sandbox.start(["sha256sum", mount.path(Self.file.name)])
      #expect(try mount.waitForStatus(of: Self.file.name) { $0.cachedByteCount > 4 << 20 })
      pair.first.stop()
      #expect(reader.wait(within: .seconds(40)) == .exited(0))
      #expect(reader.standardOutput.hasPrefix(Self.file.digest))
      #expect(try pair.second.bodyByteCount(of: Self.file) > 8 << 20)
    }

    @Test func `a server that falls silent in a read is left before its stall timeout`() throws {
      let pair = try Pair()
      let mount = try pair.mount(query: "total-rate=6m")
      let reader = try pair.sandbox.start(["sha256sum", mount.path(Self.file.name)])
      #expect(try mount.waitForStatus(of: Self.file.name) { $0.cachedByteCount > 4 << 20 })
      pair.first.signal(SIGSTOP)
      defer { pair.first.signal(SIGCONT) }
      // 24 MiB at 6 MiB/s or more, plus the time limit of 3 s once or twice; a stall takes 15 s.
      #expect(reader.wait(within: .seconds(14)) == .exited(0))
      #expect(reader.standardOutput.hasPrefix(Self.file.digest))
    }

    @Test func `a server whose file has another length is named and not asked again`() throws {
      let pair = try Pair()
      let other = pair.second.url(Self.file.name, length: Self.file.byteCount - 1, seed: 301)
      let mount = try pair.mount(query: "total-rate=12m", second: other)
      #expect(try mount.sha256(Self.file.name) == Self.file.digest)
      let mirrors = try #require(try mount.status(of: Self.file.name).mirrors)
      #expect(mirrors.map(\.state) == ["verified", "refused"])
      #expect(mirrors.last?.reason?.contains("\(Self.file.byteCount - 1) bytes") == true)
      #expect(try pair.second.bodyByteCount(of: Self.file) <= 4 << 20)
      let text = try output(of: ["cat", mount.path(".status")], within: .seconds(5))
      #expect(text.contains("is not asked again: its file has \(Self.file.byteCount - 1) bytes"))
    }

    @Test func `a server with other bytes of that length never gets one of them read`() throws {
      let pair = try Pair()
      let other = pair.second.url(Self.file.name, length: Self.file.byteCount, seed: 999)
      let mount = try pair.mount(query: "total-rate=12m", second: other)
      #expect(try mount.sha256(Self.file.name) == Self.file.digest)
      let mirrors = try #require(try mount.status(of: Self.file.name).mirrors)
      #expect(mirrors.last?.state == "refused")
    }

    @Test func `what is cached is not given up for another file while its server is away`() throws {
      let pair = try Pair()
      let other = pair.second.url(Self.file.name, length: Self.file.byteCount, seed: 999)
      let mount = try pair.mount(second: other, options: ["--read-timeout", "10"])
      let head = HeldFile.Reading.bytes(
        count: 65536, sha256: Digest.ofContent(seed: 301, byteCount: 65536))
      let before = try HeldFile(mount.path(Self.file.name))
      #expect(try before.read(at: 0, 65536) == head)
      before.close()
      pair.first.stop()
      // Longer than an open trusts the last answer.
      pause(for: .milliseconds(1500))
      let after = try HeldFile(mount.path(Self.file.name))
      #expect(try after.read(at: 0, 65536) == head)
    }

    private func duration(ofReading file: RemoteTestFile, on mount: Mount) throws -> Duration {
      let start = ContinuousClock.now
      let digest = try mount.sha256(file.name)
      #expect(digest == file.digest)
      return .now - start
    }

    @Test func `two servers of limited speed together are faster than one`() throws {
      let pair = try Pair()
      // Slow enough for a busy machine.
      let file = RemoteTestFile(name: "fast.bin", seed: 303, byteCount: 24 << 20)
      let query = "total-rate=3m"
      let one = try pair.sandbox.mount(urls: [file.url(pair.first, query: query)], cache: "one")
      let single = try duration(ofReading: file, on: one)
      try one.unmount()
      let two = try pair.mount(file, query: query)
      let both = try duration(ofReading: file, on: two)
      #expect(both < single * 0.75, "one: \(single), two: \(both)")
      #expect(try pair.second.bodyByteCount(of: file) > 6 << 20)
    }
  }
}
