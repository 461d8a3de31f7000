import Foundation
import Glibc
import Testing

/// Limits of bytes per second, for all files together and for each file.
///
/// They are set from the start and changed later.
extension RealMounts {
  @Suite struct RateLimits {
    /// Expects that `byteCount` bytes in `seconds` do not exceed `limit`, and are at least half of
    /// it on a slow machine.
    private func expectPace(
      _ byteCount: Int64, in seconds: Double, limit: Int64,
      sourceLocation: SourceLocation = #_sourceLocation
    ) {
      // The bytes that may pass at once, and a piece.
      let burst = Double(limit) / 4 + 16_384
      let most = Double(limit) * seconds * 1.15 + burst
      #expect(
        Double(byteCount) <= most, "\(byteCount) bytes in \(seconds) s at \(limit)",
        sourceLocation: sourceLocation)
      #expect(
        seconds < 2 * Double(byteCount) / Double(limit) + 4,
        "\(byteCount) bytes in \(seconds) s at \(limit)", sourceLocation: sourceLocation)
    }

    /// The seconds that a reader of whole files takes.
    private func seconds(of body: () throws -> Void) rethrows -> Double {
      try elapsed(body).seconds
    }

    private func httpfs(_ arguments: String...) throws -> CommandResult {
      try run([try Products.httpfs] + arguments, within: .seconds(30))
    }

    // MARK: A mount

    @Test(arguments: ["option", "file"])
    func `a mount has its total limit from its start`(_ place: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 3 << 20
      var options = ["--rate-limit", "1M"]
      if place == "file" {
        options = ["--config", try sandbox.write("[mount]\nrate-limit = \"1M/s\"\n", to: "c.toml")]
      }
      let urls = (0..<2).map { origin.url("t\($0).bin", length: length, seed: UInt64($0)) }
      let mount = try sandbox.mount(urls: urls, options: options)
      #expect(try mount.status().rateLimit == 1 << 20)
      #expect(try mount.status().files.map(\.rateLimit) == [nil, nil])
      let spent = try seconds {
        let readers = try (0..<2).map {
          try sandbox.start(["sha256sum", mount.path("t\($0).bin")])
        }
        for (index, reader) in readers.enumerated() {
          #expect(reader.wait(within: .seconds(60)) == .exited(0))
          #expect(
            reader.standardOutput.prefix(64)
              == Digest.ofContent(seed: UInt64(index), byteCount: length))
        }
      }
      expectPace(2 * length, in: spent, limit: 1 << 20)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `each file has its own limit, which keeps back no other one`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let lengths: [Int64] = [1 << 20, 1 << 20, 40 << 20]
      let names = ["a.bin", "b.bin", "free.bin"]
      let urls = zip(names, lengths).enumerated().map {
        origin.url($1.0, length: $1.1, seed: UInt64($0))
      }
      let list = [urls[0], urls[1], urls[2], "  max-download-limit=0"]
      let mount = try sandbox.mount(urls: list, options: ["--file-rate-limit", "300K"])
      // The limits also hold before the files are looked up.
      #expect(try mount.status().files.map(\.rateLimit) == [307_200, 307_200, nil])
      let readers = try names.map { try sandbox.start(["sha256sum", mount.path($0)]) }
      let spent = seconds {
        #expect(readers[2].wait(within: .seconds(30)) == .exited(0))
        // The others still have 3.4 s to go, even if no time has passed.
        #expect(readers[0].isRunning && readers[1].isRunning)
        for reader in readers { #expect(reader.wait(within: .seconds(30)) == .exited(0)) }
      }
      for (index, reader) in readers.enumerated() {
        #expect(
          reader.standardOutput.prefix(64)
            == Digest.ofContent(seed: UInt64(index), byteCount: lengths[index]))
      }
      // Each has its own limit of 300 KiB/s: a shared limit would take twice as long.
      expectPace(1 << 20, in: spent, limit: 300 << 10)
      #expect(spent < 6, "\(spent) s")
      #expect(try mount.status().files.map(\.rateLimit) == [307_200, 307_200, nil])
      #expect(try mount.status().rateLimit == nil)
    }

    @Test func `a limit of one file is set and taken off while it is read, by command and name`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 32 << 20
      let mount = try sandbox.mount(urls: [
        origin.url("a.bin", length: length, seed: 1, query: "total-rate=200m"),
        origin.url("b.bin", length: 1000, seed: 2), "  out=sub dir/b.bin",
      ])
      #expect(try httpfs("rate-limit", mount.mountpoint, "64K", "a*").succeeded)
      #expect(try mount.status().files.map(\.rateLimit) == [65_536, nil])
      #expect(try httpfs("rate-limit", mount.mountpoint, "1K/s", "sub dir/b.bin").succeeded)
      #expect(try mount.status().files.map(\.rateLimit) == [65_536, 1024])
      let reader = try sandbox.start(["sha256sum", mount.path("a.bin")])
      #expect(try mount.waitForStatus(of: "a.bin") { $0.fetchedByteCount > 100_000 })
      #expect(try shell("cat \(quoted(mount.path(".status")))").contains("at most 64 KiB/s"))
      // From slow to fast: waiting requests continue at once.
      let quick = try seconds {
        let refusal = try mount.control("rate-limit 0 a.bin\n")
        #expect(refusal == nil)
        #expect(reader.wait(within: .seconds(30)) == .exited(0))
      }
      #expect(quick < 15, "32 MiB without a limit in \(quick) s")
      #expect(
        reader.standardOutput.prefix(64) == Digest.ofContent(seed: 1, byteCount: length))
      #expect(try mount.status(of: "a.bin").rateLimit == nil)
    }

    @Test func `a limit that comes in the middle of a transfer holds from then on`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 400 << 20
      let mount = try sandbox.mount(urls: [
        origin.url("a.bin", length: length, seed: 1, query: "total-rate=8m")
      ])
      let reader = try sandbox.start(["dd", "if=\(mount.path("a.bin"))", "of=/dev/null", "bs=64k"])
      #expect(try mount.waitForStatus(of: "a.bin") { $0.fetchedByteCount > 4 << 20 })
      #expect(try mount.control("rate-limit 200K a.bin\n") == nil)
      let start = ContinuousClock.now
      let before = try mount.status(of: "a.bin").fetchedByteCount
      pause(for: .seconds(4))
      let came = try mount.status(of: "a.bin").fetchedByteCount - before
      let spent = (ContinuousClock.now - start).seconds
      expectPace(came, in: spent, limit: 200 << 10)
      // The expectation is halved for slow machines.
      #expect(Double(came) > 100 * 1024 * 3, "\(came) bytes in \(spent) s")
      reader.kill()
    }

    @Test func `a limited file is not taken for a stalled one, and asks for nothing twice`() throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // Each connection has its turn every second or two, which is longer than a server may be
      // silent.
      let mount = try sandbox.mount(
        urls: [origin.url("s.bin", length: 64 << 20, seed: 3)],
        options: ["--connections", "4", "--file-rate-limit", "40K", "--stall-timeout", "1"])
      let held = try HeldFile(mount.path("s.bin"))
      var reasons: Set<String> = []
      let readers = try (0..<4).map { part in
        try sandbox.start([
          "dd", "if=\(mount.path("s.bin"))", "of=/dev/null", "bs=64k", "count=1",
          "skip=\(part * 200)",
        ])
      }
      _ = try Deadline(after: .seconds(20)).wait(every: .milliseconds(100)) {
        reasons.formUnion(try mount.status(of: "s.bin").waitingReads.map(\.reason))
        return readers.allSatisfy { !$0.isRunning }
      }
      for reader in readers { #expect(reader.wait(within: .seconds(30)) == .exited(0)) }
      held.close()
      #expect(reasons.contains { $0.hasPrefix("held back by the rate limit") }, "\(reasons)")
      let status = try mount.status(of: "s.bin")
      #expect(status.retries == 0 && status.lastError == nil, "\(status)")
      #expect(try mount.unmount() == .exited(0))
      let ranges = try origin.requests().compactMap(\.range)
      #expect(Set(ranges).count == ranges.count, "\(ranges)")
    }

    @Test func `a list says the limits of its files, and says them anew when it is read again`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      func text(_ limits: [String]) -> String {
        limits.enumerated().map { index, limit in
          origin.url("f\(index).bin", length: 1 << 20, seed: UInt64(index))
            + (limit.isEmpty ? "\n" : "\n  max-download-limit=\(limit)\n")
        }.joined()
      }
      let list = try sandbox.write(text(["200K", "", "1M/s"]), to: "urls.txt")
      let mount = try sandbox.mount(source: list)
      #expect(try mount.status().files.map(\.rateLimit) == [204_800, nil, 1 << 20])
      let listed = try httpfs("list", list)
      #expect(listed.output.contains("  max-download-limit=204800\n"), "\(listed.output)")
      expectPace(
        1 << 20, in: try seconds { _ = try mount.sha256("f0.bin") }, limit: 200 << 10)
      // A limit that was set since then stays if the list has not changed.
      _ = try mount.sha256("f1.bin")
      #expect(try mount.control("rate-limit 7K f1.bin\n") == nil)
      let inode = try output(of: ["stat", "--format=%i", mount.path("f0.bin")])
      try sandbox.write(text(["0", "", "3M"]), to: "urls.txt")
      #expect(try httpfs("refresh", mount.mountpoint).succeeded)
      let isTaken = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
        try mount.status().files.map(\.rateLimit) == [nil, 7 << 10, 3 << 20]
      }
      let limits = try mount.status().files.map(\.rateLimit)
      #expect(isTaken, "\(limits)")
      // The file is the same, with the same bytes.
      #expect(try output(of: ["stat", "--format=%i", mount.path("f0.bin")]) == inode)
      #expect(try mount.status(of: "f0.bin").state == "complete")
    }

    // MARK: get and put

    @Test(arguments: [
      ["--rate-limit", "1M"], ["--file-rate-limit", "1M", "--rate-limit", "1M/s"],
    ])
    func `get bounds all its files together`(options: [String]) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let length: Int64 = 1_500_000
      let urls = (0..<3).map { origin.url("g\($0).bin", length: length, seed: UInt64($0)) }
      let result = try work.run(["get"] + options + urls)
      #expect(result.succeeded, "\(result.error)")
      expectPace(3 * length, in: result.duration.seconds, limit: 1 << 20)
      for index in 0..<3 {
        #expect(
          try work.sha256("g\(index).bin")
            == Digest.ofContent(seed: UInt64(index), byteCount: length))
      }
    }

    @Test func `get bounds each file over all its connections, and as its list says`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let length: Int64 = 2 << 20
      let urls = (0..<4).map { origin.url("g\($0).bin", length: length, seed: UInt64($0)) }
      try work.sandbox.write(
        (urls.dropLast() + [origin.url("free.bin", length: 40 << 20, seed: 9)])
          .joined(separator: "\n") + "\n  max-download-limit=0\n", to: "work/list")
      let start = ContinuousClock.now
      let command = try work.start(
        "get", "--file-rate-limit", "512K", "-x", "4", "-i", "list", urls[3], "-o", ".", "-j", "5")
      let isFreeThere = Deadline(after: .seconds(20)).wait {
        FileStatus.byteCount(of: work.path("free.bin")) != nil
      }
      #expect(isFreeThere)
      #expect(FileStatus.byteCount(of: work.path("g0.bin")) == nil)
      #expect(command.wait(within: .seconds(30)) == .exited(0), "\(command.standardError)")
      // 4 s for each, in parallel; 16 s if they shared the limit.
      let spent = (ContinuousClock.now - start).seconds
      expectPace(length, in: spent, limit: 512 << 10)
      #expect(spent < 10, "\(spent) s")
      for index in 0..<4 {
        #expect(
          try work.sha256("g\(index).bin")
            == Digest.ofContent(seed: UInt64(index), byteCount: length))
      }
    }

    @Test func `a download that is held back is not taken for a stalled one`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // Each of four connections has its turn every 1.6 s.
      let command = try work.start(
        "get", "--file-rate-limit", "40K", "-x", "4", "--stall-timeout", "1", "--retries", "0",
        origin.url("s.bin", length: 400 << 20, seed: 8))
      // Only time shows that the command does not end.
      #expect(command.wait(within: .seconds(7)) == nil, "\(command.standardError)")
      command.signal(SIGINT)
      #expect(command.wait(within: .seconds(10)) == .exited(130))
      let ranges = try origin.requests().compactMap(\.range)
      #expect(ranges.count >= 4 && Set(ranges).count == ranges.count, "\(ranges)")
    }

    @Test func `a session keeps the limits that a list has given`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("k.bin", length: 1 << 20, seed: 4)
      try work.sandbox.write("\(url)\n max-download-limit=40K\n", to: "work/list")
      let command = try work.start("get", "--session", "session", "-i", "list")
      #expect(work.waitForPart(of: "k.bin"))
      command.signal(SIGINT)
      #expect(command.wait(within: .seconds(10)) == .exited(130))
      let session = try work.text("session")
      #expect(session.contains("\n  max-download-limit=40960\n"), "\(session)")
      try work.sandbox.write(
        session.replacingOccurrences(of: "=40960", with: "=0"), to: "work/session")
      #expect(try work.get("--session", "session").succeeded)
      #expect(try work.sha256("k.bin") == Digest.ofContent(seed: 4, byteCount: 1 << 20))
    }

    @Test func `put bounds what it sends`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let length: Int64 = 4 << 20
      let hash = try work.writeContent("up.bin", seed: 5, byteCount: length)
      let result = try work.put(
        "--rate-limit", "1M", "up.bin", origin.url("up.bin", length: 1, seed: 1))
      #expect(result.succeeded, "\(result.error)")
      expectPace(length, in: result.duration.seconds, limit: 1 << 20)
      let request = try #require(try origin.requests().last { $0.method == "PUT" })
      #expect(request.requestBodyHash == hash)
    }

    // MARK: What is refused

    @Test(arguments: [
      ["mount", "--rate-limit", "fast", "@/urls.txt", "@/empty"],
      ["mount", "--file-rate-limit", "1.5", "@/urls.txt", "@/empty"],
      ["get", "--rate-limit", "10XB", "http://127.0.0.1:9/a"],
      ["get", "--file-rate-limit=-1", "http://127.0.0.1:9/a"],
      ["put", "--rate-limit", "1M/h", "@/urls.txt", "http://127.0.0.1:9/a"],
      ["rate-limit", "@/empty", "x", "a.bin"],
    ])
    func `what is no rate is refused as bad usage, with the value`(arguments: [String]) throws {
      let sandbox = try Sandbox()
      try sandbox.write("http://127.0.0.1:9/a\n", to: "urls.txt")
      _ = try sandbox.makeDirectory("empty")
      let result = try run(
        [try Products.httpfs]
          + arguments.map { $0.replacingOccurrences(of: "@", with: sandbox.directory) })
      #expect(result.ending == .exited(64), "\(result.error)")
      let value = ["fast", "1.5", "10XB", "-1", "1M/h", "x"].first { value in
        arguments.contains { $0 == value || $0.hasSuffix("=" + value) }
      }
      #expect(result.error.contains("'\(value ?? "")'"), "\(result.error)")
    }

    @Test func `a limit of a file that is not there is refused, and changes nothing`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("a.bin", length: 10, seed: 1)])
      let result = try httpfs("rate-limit", mount.mountpoint, "1M", "a.bin", "nosuch")
      #expect(result.ending == .exited(1))
      #expect(result.error.hasPrefix("httpfs: no file 'nosuch'"), "\(result.error)")
      #expect(try mount.control("rate-limit 1M nosuch\n") == "ENOENT")
      #expect(try mount.control("rate-limit 1M a.bin\nrate-limit x a.bin\n") == "EINVAL")
      #expect(try mount.status(of: "a.bin").rateLimit == nil)
      let list = try sandbox.write(
        origin.url("a.bin", length: 10, seed: 1) + "\n max-download-limit=soon\n", to: "bad.txt")
      let refused = try httpfs("list", list)
      #expect(refused.ending == .exited(1))
      #expect(refused.error.contains(":2: max-download-limit= is the bytes"), "\(refused.error)")
    }
  }
}
