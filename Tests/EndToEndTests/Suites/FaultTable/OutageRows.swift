import Foundation
import Glibc
import Testing

/// A server that goes away under readers, and comes back or not.
extension RealMounts {
  @Suite struct OutageRows {
    private static let length: Int64 = 8 << 20

    /// How long the server is away: `scripts/torture faults` tries all, a run of the tests the
    /// shortest.
    private static let outages: [Duration] =
      FaultSeeds.isScript ? [.seconds(3), .seconds(20), .seconds(90)] : [.seconds(3)]

    @Test(
      "81 the server restarts: readers wait for it, or fail by their deadlines, and all is whole",
      .timeLimit(.minutes(5)), arguments: FaultSeeds.all, outages)
    func restarts(seed: UInt64, outage: Duration) throws {
      let sandbox = try Sandbox()
      let port = try FreePort.next()
      var origin = try OriginServer(port: port)
      let urls = (0..<16).map {
        origin.url("\($0).bin", length: Self.length, seed: seed + UInt64($0))
      }
      let mount = try sandbox.mount(urls: urls)
      // Their lengths and first bytes are known.
      for index in 0..<16 {
        _ = try output(of: ["head", "-c", "1", mount.path("\(index).bin")])
      }
      origin.stop()
      let start = ContinuousClock.now
      let readers = try (0..<16).map { index in
        try sandbox.start(["sha256sum", mount.path("\(index).bin")])
      }
      pause(until: .seconds(3), since: start)
      #expect(!readers.contains { !$0.isRunning })
      let waiting = try mount.status(of: "3.bin").waitingReads
      #expect(waiting.contains { $0.reason.contains("connection refused") }, "\(waiting)")
      if outage > Self.outageTimeout {
        for reader in readers {
          #expect(reader.wait(within: .seconds(75) - (.now - start)) == .exited(1))
          #expect(reader.standardError.contains("error"), "\(reader.standardError)")
        }
        pause(until: outage, since: start)
        // Now no reader waits, and one request at a time looks for the server.
        #expect(try failingRead(mount, "3.bin") < .seconds(2))
      }
      pause(until: outage, since: start)
      origin = try OriginServer(port: port)
      let back = ContinuousClock.now
      if outage > Self.outageTimeout {
        for index in 0..<16 { try expectWhole(mount, index, seed: seed) }
      } else {
        var first: Duration?
        for (index, reader) in readers.enumerated() {
          #expect(reader.wait(within: .seconds(50)) == .exited(0), "\(reader.standardError)")
          first = first ?? (.now - back)
          #expect(
            reader.standardOutput.hasPrefix(
              Digest.ofContent(seed: seed + UInt64(index), byteCount: Self.length)))
        }
        // Bytes flow again within two seconds; the first reader also has to finish.
        #expect(try #require(first) < .seconds(10))
      }
      #expect(try mount.unmount() == .exited(0))
      _ = origin
    }

    /// The default of `--outage-timeout`.
    private static let outageTimeout = Duration.seconds(60)

    private func pause(until moment: Duration, since start: ContinuousClock.Instant) {
      let left = moment - (.now - start)
      if left > .zero { usleep(UInt32(left / .microseconds(1))) }
    }

    /// Reads a file, whose server has come back, until it can be read.
    private func expectWhole(_ mount: Mount, _ index: Int, seed: UInt64) throws {
      #expect(
        Deadline(after: .seconds(20)).wait(every: .milliseconds(200)) {
          (try? mount.sha256("\(index).bin"))
            == Digest.ofContent(seed: seed + UInt64(index), byteCount: Self.length)
        })
    }

    @Test(
      "81 the server is gone: reads fail at once, and work when it is back",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func gone(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let port = try FreePort.next()
      var origin = try OriginServer(port: port)
      let url = origin.url("0.bin", length: Self.length, seed: seed)
      let never = origin.url("never.bin", length: Self.length, seed: seed)
      let mount = try sandbox.mount(
        urls: [url, never],
        options: ["--outage-timeout", "3s", "--first-answer-timeout", "2s"])
      _ = try output(of: ["head", "-c", "1", mount.path("0.bin")])
      origin.stop()
      let text = try String(contentsOfFile: mount.path(".status"), encoding: .utf8)
      #expect(text.contains("timeouts: read 1m00s, first answer 2s, outage 3s"), "\(text)")
      // A file that has never answered.
      let unknown = elapsed {
        #expect(access(mount.path("never.bin"), R_OK) != 0 && errno == EIO)
      }
      #expect(unknown > .seconds(1) && unknown < .seconds(8))
      #expect(try failingRead(mount) < .seconds(8))
      for _ in 0..<3 { #expect(try failingRead(mount) < .seconds(2)) }
      origin = try OriginServer(port: port)
      try expectWhole(mount, 0, seed: seed)
      #expect(try mount.unmount() == .exited(0))
      _ = origin
    }

    @Test(
      "81 what has never answered, but with errors, fails soon", .timeLimit(.minutes(2)),
      arguments: FaultSeeds.all)
    func neverAnswered(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let names = ["busy.bin": "status=503", "refused.bin": "status=400"]
      let mount = try sandbox.mount(
        urls: names.map { origin.url($0, length: 1000, seed: seed, query: $1) }
          + [origin.url("0.bin", length: Self.length, seed: seed)],
        options: ["--no-check", "--first-answer-timeout", "3s"])
      try expectWhole(mount, 0, seed: seed)
      for (name, limits) in [
        ("busy.bin", Duration.seconds(1)..<Duration.seconds(9)),
        ("refused.bin", Duration.zero..<Duration.seconds(2)),
      ] {
        let duration = elapsed { #expect(access(mount.path(name), R_OK) != 0 && errno == EIO) }
        #expect(limits.contains(duration), "\(name) took \(duration)")
      }
      #expect(try mount.unmount() == .exited(0))
    }

    /// Reads the last byte, which fails; returns how long that took.
    private func failingRead(_ mount: Mount, _ name: String = "0.bin") throws -> Duration {
      try elapsed {
        let result = try run(["tail", "-c", "1", mount.path(name)], within: .seconds(30))
        #expect(result.error.contains("Input/output error"), "\(result.error)")
      }
    }

    @Test(
      "81 the target of redirects is gone: other files of the server that redirects are read",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func goneTarget(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let target =
        "http://127.0.0.1:\(try FreePort.next())/gone.bin"
        .addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      let gone = origin.url("gone.bin", length: 1000, seed: seed, query: "redirect=\(target)")
      let other = origin.url("0.bin", length: Self.length, seed: seed)
      let mount = try sandbox.mount(
        urls: [gone, other],
        options: ["--outage-timeout", "3s", "--first-answer-timeout", "2s"])
      for _ in 0..<3 { #expect(access(mount.path("gone.bin"), R_OK) != 0) }
      #expect(try mount.sha256("0.bin") == Digest.ofContent(seed: seed, byteCount: Self.length))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "81 the target of redirects dies, and they lead elsewhere: open files and downloads follow",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all,
      ["stopped", "closing", "unavailable", "refusing", "page", "another"])
    func movedTarget(seed: UInt64, target: String) throws {
      let work = try TransferWorkspace()
      let (origin, first, second) = (try OriginServer(), try OriginServer(), try OriginServer())
      func redirect(to server: OriginServer) throws {
        try origin.control(
          "/data/*",
          ["redirect": server.url("0.bin", length: Self.length, seed: seed, query: "total-rate=2m")]
        )
      }
      try redirect(to: first)
      let listed = origin.url("0.bin", length: Self.length, seed: seed)
      let mount = try work.sandbox.mount(urls: [listed])
      func isRight(_ data: Data?, at offset: Int64) -> Bool {
        data.map { data in Digest.hex { update in data.withUnsafeBytes(update) } }
          == Digest.ofContent(seed: seed, offset: offset, byteCount: 4096)
      }
      let file = try #require(FileHandle(forReadingAtPath: mount.path("0.bin")))
      let head = try file.read(upToCount: 4096)
      #expect(isRight(head, at: 0))
      let download = try work.start("get", listed, "-o", "got.bin")
      sleep(2)
      switch target {
      case "stopped": first.stop()
      case "unavailable": try first.control("*", ["status": "503"])
      case "refusing": try first.control("*", ["status": "400"])
      case "page": try first.control("*", ["fault": "html-200"])
      case "another": try first.control("*", ["version": "2"])
      default:
        try first.post(["match": "*", "actions": ["close"]])
      }
      try redirect(to: second)
      try file.seek(toOffset: UInt64(Self.length) - 4096)
      let start = ContinuousClock.now
      let last = try file.read(upToCount: 4096)
      #expect(.now - start < .seconds(10))
      #expect(isRight(last, at: Self.length - 4096))
      try file.close()
      #expect(download.wait(within: .seconds(60)) == .exited(0), "\(download.standardError)")
      #expect(
        try work.sha256("got.bin") == Digest.ofContent(seed: seed, byteCount: Self.length))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "81 a dead target is replaced: every open file is read at once from the new one",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func manyFollow(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let (origin, first, second) = (try OriginServer(), try OriginServer(), try OriginServer())
      func redirect(to base: String) throws {
        for index in 0..<Self.fileCount {
          let path = "/data/\(index).bin"
          let query = "length=\(Self.longLength)&seed=\(seed)"
          try origin.control(path, ["redirect": "\(base)\(path)?\(query)"])
        }
      }
      try redirect(to: first.origin)
      let mount = try sandbox.mount(
        urls: (0..<Self.fileCount).map {
          origin.url("\($0).bin", length: Self.longLength, seed: seed)
        }, options: ["--outage-timeout", "3s", "--first-answer-timeout", "2s"])
      let files = try (0..<Self.fileCount).map { index in
        try #require(FileHandle(forReadingAtPath: mount.path("\(index).bin")))
      }
      for file in files { #expect(try file.read(upToCount: 4096)?.count == 4096) }
      first.stop()
      // Until it counts as gone.
      let patience = Deadline(after: .seconds(30))
      _ = patience.wait {
        pread(files[0].fileDescriptor, 100 << 20) == nil && elapsedQuickly(files)
      }
      try redirect(to: second.origin)
      let start = ContinuousClock.now
      for (index, file) in files.enumerated() {
        let deadline = Deadline(after: .seconds(20))
        #expect(deadline.wait { pread(file.fileDescriptor, 200 << 20) != nil }, "file \(index)")
      }
      // Not one after the other, a second each.
      #expect(.now - start < .seconds(6))
      for file in files {
        try file.seek(toOffset: UInt64(Self.longLength) - 4096)
        let last = try #require(try file.read(upToCount: 4096))
        #expect(
          Digest.hex { update in last.withUnsafeBytes(update) }
            == Digest.ofContent(
              seed: seed, offset: Self.longLength - 4096, byteCount: 4096))
        try file.close()
      }
      #expect(try mount.unmount() == .exited(0))
    }

    private static let fileCount = 8
    /// Long enough that read-ahead leaves most of a file absent.
    private static let longLength: Int64 = 512 << 20

    /// Waits until the server of a file counts as gone, and expects that it stays so.
    private func expectGone(_ file: CInt) {
      let patience = Deadline(after: .seconds(30))
      #expect(patience.wait { pread(file, 300 << 20) == nil })
      sleep(3)
      #expect(pread(file, 300 << 20) == nil)
    }

    /// The byte at `offset`; nil if the read fails.
    private func pread(_ descriptor: CInt, _ offset: Int) -> UInt8? {
      var byte: UInt8 = 0
      return Glibc.pread(descriptor, &byte, 1, offset) == 1 ? byte : nil
    }

    /// Whether reads fail at once.
    private func elapsedQuickly(_ files: [FileHandle]) -> Bool {
      elapsed { _ = pread(files[1].fileDescriptor, 100 << 20) } < .seconds(2)
    }

    @Test(
      "81 redirects lead to a dead server: open files are read from the one that is known",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func knownTarget(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let (origin, target) = (try OriginServer(), try OriginServer())
      let path = "/data/0.bin"
      let query = "length=\(Self.longLength)&seed=\(seed)"
      try origin.control(path, ["redirect": "\(target.origin)\(path)?\(query)"])
      let mount = try sandbox.mount(
        urls: [origin.url("0.bin", length: Self.longLength, seed: seed)],
        options: [
          "--outage-timeout", "1s", "--first-answer-timeout", "1s",
          "--revalidate", "1s",
        ])
      let file = try #require(FileHandle(forReadingAtPath: mount.path("0.bin")))
      #expect(try file.read(upToCount: 4096)?.count == 4096)
      let dead = "http://127.0.0.1:\(try FreePort.next())/gone.bin"
      try origin.control(path, ["redirect": dead])
      var failures = 0
      for step in 1...6 {
        usleep(1_200_000)
        // It asks the listed server again.
        _ = try? FileHandle(forReadingFrom: URL(fileURLWithPath: mount.path("0.bin"))).close()
        if pread(file.fileDescriptor, step * 60_000_000) == nil { failures += 1 }
      }
      #expect(failures == 0)
      try file.close()
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "81 a server that takes long to connect comes back", .timeLimit(.minutes(2)),
      arguments: FaultSeeds.all)
    func slowConnection(seed: UInt64) throws {
      let sandbox = try Sandbox()
      var origin = try OriginServer()
      let originPort = origin.port
      let authority = try CertificateAuthority(directory: sandbox.directory)
      let front = try TLSFront(
        directory: sandbox.directory, certificate: authority.certificate(), port: origin.port)
      var slow: SlowFront? = try SlowFront(target: front.port, delay: .seconds(2))
      let port = try #require(slow?.port)
      let url = origin.url("0.bin", length: Self.longLength, seed: seed).replacing(
        "http://127.0.0.1:\(origin.port)", with: "https://localhost:\(port)")
      let mount = try sandbox.mount(
        urls: [url],
        options: [
          "--cacert", authority.certificatePath, "--outage-timeout", "2s",
          "--first-answer-timeout", "10s", "--connections", "1",
        ])
      // The next server must not inherit it.
      let file = open(mount.path("0.bin"), O_RDONLY | O_CLOEXEC)
      #expect(pread(file, 0) != nil)
      slow = nil
      // Its connections end, too.
      origin.stop()
      expectGone(file)
      origin = try OriginServer(port: originPort)
      slow = try SlowFront(target: front.port, port: port, delay: .seconds(2))
      let back = Deadline(after: .seconds(20))
      #expect(back.wait { pread(file, 300 << 20) != nil })
      close(file)
      #expect(try mount.unmount() == .exited(0))
      _ = slow
    }

    @Test(
      "81 the target of redirects comes back: readers and openers do not keep it from being asked",
      .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
    func busyReturn(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      var target = try OriginServer()
      let port = target.port
      let path = "/data/0.bin"
      let query = "length=\(Self.longLength)&seed=\(seed)"
      try origin.control(path, ["redirect": "\(target.origin)\(path)?\(query)"])
      let mount = try sandbox.mount(
        urls: [origin.url("0.bin", length: Self.longLength, seed: seed)],
        options: [
          "--outage-timeout", "2s", "--first-answer-timeout", "2s", "--revalidate", "0s",
        ])
      let name = mount.path("0.bin")
      let file = open(name, O_RDONLY | O_CLOEXEC)
      #expect(pread(file, 0) != nil)
      target.stop()
      let opener = Thread {
        while !Thread.current.isCancelled {
          close(open(name, O_RDONLY | O_CLOEXEC))
          usleep(100_000)
        }
      }
      opener.start()
      let end = ContinuousClock.now + .seconds(7)
      while .now < end {
        #expect(pread(file, 300 << 20) == nil)
        usleep(100_000)
      }
      target = try OriginServer(port: port)
      let back = Deadline(after: .seconds(5))
      #expect(back.wait { pread(file, 300 << 20) != nil })
      opener.cancel()
      while !opener.isFinished { usleep(10_000) }
      close(file)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "81 redirects pass a server twice that was gone and is back", .timeLimit(.minutes(2)),
      arguments: FaultSeeds.all)
    func twicePassed(seed: UInt64) throws {
      let sandbox = try Sandbox()
      var origin = try OriginServer()
      let (port, other) = (origin.port, try OriginServer())
      let path = "/data/0.bin"
      func redirect() throws {
        try origin.control(path, ["redirect": "\(other.origin)\(path)"])
      }
      let end = origin.url("end.bin", length: Self.longLength, seed: seed)
      try redirect()
      try other.control(path, ["redirect": end])
      let listed = origin.url("0.bin", length: Self.longLength, seed: seed)
      let mount = try sandbox.mount(
        urls: [listed], options: ["--outage-timeout", "2s", "--first-answer-timeout", "2s"])
      let file = open(mount.path("0.bin"), O_RDONLY | O_CLOEXEC)
      #expect(pread(file, 0) != nil)
      origin.stop()
      expectGone(file)
      origin = try OriginServer(port: port)
      try redirect()
      let back = Deadline(after: .seconds(10))
      #expect(back.wait { pread(file, 300 << 20) != nil })
      close(file)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test("81 a URL command that names a silent server again and again ends with its retries")
    func silentSignedServer() throws {
      let work = try TransferWorkspace()
      let silent = try SlowFront(target: try FreePort.next(), delay: .seconds(600))
      let start = ContinuousClock.now
      let result = try work.run([
        "get", "http://example.org/a.bin", "--url-command",
        "echo http://127.0.0.1:\(silent.port)/a.bin", "--stall-timeout", "6s", "--retries", "1",
      ])
      #expect(result.ending == .exited(2), "\(result.error)")
      #expect(.now - start < .seconds(50))
    }

    @Test("23 Retry-After of a signed URL's server does not delay the next URL, of another server")
    func signedRetryAfter() throws {
      let work = try TransferWorkspace()
      let (busy, good) = (try OriginServer(), try OriginServer())
      // The command runs again for a URL that is older than five seconds.
      let refused = busy.url(
        "a.bin", length: 4096, seed: 1, query: "status=503&retry-after=40&latency=6000")
      let signed = good.url("a.bin", length: 4096, seed: 1)
      let command =
        "if mkdir '\(work.path("signed"))'; then echo '\(refused)'; else echo '\(signed)'; fi"
      let start = ContinuousClock.now
      let result = try work.run(["get", "http://example.org/a.bin", "--url-command", command])
      #expect(result.ending == .exited(0), "\(result.error)")
      #expect(.now - start < .seconds(30))
    }

    @Test("81 the target of a signed URL's redirect dies: the signed URL is asked again at once")
    func signedTarget() throws {
      let work = try TransferWorkspace()
      let (origin, target, next) = (try OriginServer(), try OriginServer(), try OriginServer())
      let (path, length) = ("/data/a.bin", Int64(32 << 20))
      let signed = origin.url("a.bin", length: length, seed: 1)
      try origin.control(
        path, ["redirect": target.url("a.bin", length: length, seed: 1, query: "rate=2000000")])
      let process = try work.start(
        "get", "http://example.org/a.bin", "--url-command", "echo '\(signed)'", "--retries", "1")
      #expect(work.waitForPart(of: "a.bin"))
      // The target is no longer new, and has brought bytes.
      sleep(3)
      try origin.control(path, ["redirect": next.url("a.bin", length: length, seed: 1)])
      target.stop()
      #expect(process.wait(within: .seconds(30)) == .exited(0), "\(process.standardError)")
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 1, byteCount: length))
    }
  }
}
