import Glibc
import Testing

/// A server that stalls delays only its own readers, and these not beyond their deadline.
extension RealMounts {
  @Suite struct Stalls {
    private static let length: Int64 = 4 << 20

    /// Mounts `count` files whose server sends no more bodies once their metadata is known.
    private func stalledMount(
      _ sandbox: Sandbox, _ origin: OriginServer, count: Int, readTimeout: Int
    ) throws -> Mount {
      let urls = (0..<count).map {
        origin.url("stall\($0).bin", length: Self.length, seed: UInt64(7000 + $0))
      }
      let mount = try sandbox.mount(urls: urls, options: ["--read-timeout", String(readTimeout)])
      try output(of: ["ls", "-l", mount.mountpoint], within: .seconds(60))
      try origin.control("/data/stall*", ["fault": "stall", "fault-at": "0"])
      return mount
    }

    /// Starts reads that need the server: far from the first bytes, which the probe may fetch.
    private func startReaders(_ sandbox: Sandbox, _ mount: Mount, count: Int) throws
      -> [ChildProcess]
    {
      try (0..<count).map { index in
        try sandbox.start(
          [
            "dd", "if=\(mount.path("stall\(index).bin"))", "of=/dev/null", "bs=64k", "skip=32",
            "count=1",
          ])
      }
    }

    @Test
    func `100 stalled reads delay neither ls nor stat nor .status, and end by their deadline`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try stalledMount(sandbox, origin, count: 100, readTimeout: 5)
      let start = ContinuousClock.now
      let readers = try startReaders(sandbox, mount, count: 100)
      pause(for: .milliseconds(700))

      for command in [
        ["ls", "-l", mount.mountpoint],
        ["stat", mount.path("stall50.bin")],
        ["cat", mount.path(".status")],
        ["cat", mount.path(".status.json")],
      ] {
        let result = try run(command, within: .seconds(10))
        #expect(result.succeeded, "\(result.commandLine): \(result.error)")
        print("with 100 stalled reads, \(command[0]): \(result.duration)")
        // This takes 100 ms on a quiet machine; the limit allows for a busy one.
        #expect(result.duration <= .seconds(1), "\(result.commandLine): \(result.duration)")
      }
      let status = try mount.status()
      let waiting = status.files.filter { !$0.waitingReads.isEmpty }
      #expect(waiting.count >= 90, "\(waiting.count) files with waiting reads")
      #expect(waiting.allSatisfy { $0.waitingReads.allSatisfy { !$0.reason.isEmpty } })

      for reader in readers {
        let rest = Duration.seconds(5 + 5) - (.now - start)
        let ending = reader.wait(within: max(rest, .zero))
        #expect(ending == .exited(1), "\(reader.commandLine)")
        let error = reader.standardError
        #expect(
          error.contains("Connection timed out") || error.contains("Input/output error"), "\(error)"
        )
      }
      print("the last stalled read ended after \(ContinuousClock.now - start), deadline 5 s")
      #expect(mount.process.isRunning)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `a killed reader of a stalled file goes at once, and the mount can end`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try stalledMount(sandbox, origin, count: 10, readTimeout: 60)
      let readers = try startReaders(sandbox, mount, count: 10)
      pause(for: .milliseconds(500))
      for reader in readers {
        #expect(reader.isRunning)
        reader.signal(SIGKILL)
      }
      for reader in readers {
        #expect(reader.wait(within: .seconds(30)) == .signalled(SIGKILL), "\(reader.commandLine)")
      }
      #expect(try mount.unmount() == .exited(0))
    }

    @Test func `the end of a stall lets the reads go on`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try stalledMount(sandbox, origin, count: 1, readTimeout: 60)
      try origin.control("/data/stall*", ["fault": "stall", "fault-at": "0", "stall-seconds": "3"])
      let reader = try sandbox.start(["sha256sum", mount.path("stall0.bin")])
      pause(for: .seconds(1))
      try origin.clearControl()
      #expect(reader.wait(within: .seconds(70)) == .exited(0))
      #expect(
        reader.standardOutput.prefix(64) == Digest.ofContent(seed: 7000, byteCount: Self.length))
    }

    @Test func `a read whose server falls silent gets its bytes over another connection`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("hedged.bin", length: Self.length, seed: 7300, query: "latency=20")])
      try output(of: ["ls", "-l", mount.mountpoint], within: .seconds(60))
      try origin.clearLog()
      // Only one response stalls: the path of that connection is broken.
      try origin.control(
        "/data/hedged*", ["fault": "stall", "fault-at": "0", "fault-count": "1"])
      let start = ContinuousClock.now
      let read = try run(
        ["dd", "if=\(mount.path("hedged.bin"))", "bs=64k", "skip=32", "count=1", "status=none"],
        within: .seconds(30))
      let duration = ContinuousClock.now - start
      #expect(read.succeeded, "\(read.error)")
      // Without a hedge, the request would be abandoned after 15 s.
      #expect(duration < .seconds(8), "\(duration)")
      print("a read of which one request was stalled took \(duration)")
      #expect(try mount.unmount() == .exited(0))
      let requests = try origin.requests()
      #expect(Set(requests.map(\.connection)).count >= 2)
      #expect(requests.count <= 4, "\(requests.count) requests")
    }

    @Test(arguments: ["SIGTERM", "SIGINT"])
    func `a signal unmounts even while reads are stalled`(name: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try stalledMount(sandbox, origin, count: 4, readTimeout: 60)
      let readers = try startReaders(sandbox, mount, count: 4)
      pause(for: .milliseconds(500))
      mount.process.signal(name == "SIGTERM" ? SIGTERM : SIGINT)
      #expect(mount.process.wait(within: .seconds(15)) == .exited(0))
      #expect(!mount.isMounted)
      for reader in readers {
        #expect(reader.wait(within: .seconds(30)) != nil, "\(reader.commandLine)")
      }
    }
  }
}
