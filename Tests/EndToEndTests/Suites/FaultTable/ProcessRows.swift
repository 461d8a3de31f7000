import Foundation
import Glibc
import SeededRandom
import Testing

/// Rows 67 to 70, 74 and 76 of the fault table: readers and daemons that die, hang or are
/// suspended.
extension RealMounts {
  @Suite struct ProcessRows {
    /// The length of the files.
    static let length: Int64 = 8 << 20

    /// Mounts files whose server sends no more bodies once their metadata is known.
    ///
    /// The server continues to send `other.bin`.
    private func stalledMount(
      _ sandbox: Sandbox, _ origin: OriginServer, count: Int, seed: UInt64, readTimeout: Int
    ) throws -> Mount {
      let stalled = (0..<count).map {
        origin.url("stall\($0).bin", length: Self.length, seed: seed &+ UInt64($0))
      }
      let urls = stalled + [origin.url("other.bin", length: Self.length, seed: seed)]
      let mount = try sandbox.mount(urls: urls, options: ["--read-timeout", String(readTimeout)])
      try output(of: ["ls", "-l", mount.mountpoint], within: .seconds(60))
      try origin.control("/data/stall*", ["fault": "stall", "fault-at": "0"])
      return mount
    }

    /// Starts a reader at a block of 64 KiB that only the server has.
    ///
    /// The reader has no signal handlers: the kernel keeps a program that handles SIGINT, such as
    /// dd, until its read is answered (docs/SEMANTICS.md).
    private func startReader(_ sandbox: Sandbox, _ path: String, block: Int) throws -> ChildProcess
    {
      try sandbox.start(["tail", "--bytes=+\((block << 16) + 1)", path])
    }

    /// Expects the right bytes at an offset of a file.
    private func expectRight(
      _ file: HeldFile, seed: UInt64, at offset: Int64, _ byteCount: Int = 65_536,
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let expected = HeldFile.Reading.bytes(
        count: byteCount,
        sha256: Digest.ofContent(seed: seed, offset: offset, byteCount: Int64(byteCount)))
      #expect(try file.read(at: offset, byteCount) == expected, sourceLocation: sourceLocation)
    }

    // MARK: 67

    @Test(
      "67 Ctrl-C or SIGKILL of a reader: it is gone within 1 s",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func killedReader(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 67)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try stalledMount(sandbox, origin, count: 8, seed: seed, readTimeout: 60)
      let readers = try (0..<8).map {
        try startReader(
          sandbox, mount.path("stall\($0).bin"), block: Int.random(in: 16..<128, using: &random))
      }
      #expect(try mount.waitForStatus(of: "stall7.bin") { !$0.waitingReads.isEmpty })
      for (index, reader) in readers.enumerated() {
        let signal = index.isMultiple(of: 2) ? SIGKILL : SIGINT
        #expect(reader.isRunning)
        reader.signal(signal)
        #expect(reader.wait(within: .seconds(1)) == .signalled(signal), "\(reader.commandLine)")
      }
      // No other reader is affected.
      #expect(try mount.sha256("other.bin") == Digest.ofContent(seed: seed, byteCount: Self.length))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "67 a killed reader of a body of unknown length is gone within 1 s",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func killedDirectReader(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url(
        "d.bin", length: Self.length, seed: seed,
        query: "chunked=1&fault=stall&fault-at=\(100_000 + seed % 1000)")
      let mount = try sandbox.mount(urls: [url])
      let reader = try sandbox.start(["cat", mount.path("d.bin")])
      #expect(try mount.waitForStatus(of: "d.bin") { !$0.waitingReads.isEmpty })
      let signal = seed.isMultiple(of: 2) ? SIGKILL : SIGINT
      reader.signal(signal)
      #expect(reader.wait(within: .seconds(1)) == .signalled(signal))
      #expect(try mount.unmount() == .exited(0))
    }

    // MARK: 68

    /// Expects that the mount point reports for a while that no daemon serves it.
    ///
    /// It must never be an empty directory, which `rsync --delete` would take for an order.
    private func expectNotConnected(
      _ mount: Mount, enter: [String] = [], for duration: Duration = .seconds(1),
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let end = ContinuousClock.now + duration
      repeat {
        let list = try run(enter + ["ls", mount.mountpoint], within: .seconds(5))
        #expect(!list.succeeded, sourceLocation: sourceLocation)
        #expect(
          list.error.contains("not connected") || list.error.contains("connection abort"),
          "\(list.output)\(list.error)", sourceLocation: sourceLocation)
        pause(for: .milliseconds(20))
      } while ContinuousClock.now < end
    }

    @Test(
      "68 the daemon dies: ENOTCONN for readers and newcomers, until 'httpfs unmount'",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func deadDaemon(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("d.bin", length: Self.length, seed: seed)])
      let file = try HeldFile(mount.path("d.bin"))
      try expectRight(file, seed: seed, at: 1_000_000)
      let watchdogs = ProcessTable.watchdogs(of: mount.mountpoint)
      #expect(watchdogs.count == 1)
      // If the watchdog held a shell's pipeline open, the shell would never end.
      for watchdog in watchdogs {
        // The watchdog closes the descriptors as its first step.
        let isClosed = Deadline(after: .seconds(5)).wait {
          let descriptors = ProcessTable.descriptors(of: watchdog)
          return descriptors.count == 3 && descriptors.count { $0 == "/dev/null" } == 2
        }
        #expect(isClosed, "\(ProcessTable.descriptors(of: watchdog))")
      }
      mount.process.signal(SIGKILL)
      #expect(mount.process.wait(within: .seconds(30)) == .signalled(SIGKILL))
      try expectNotConnected(mount, for: .seconds(2))
      #expect(try file.read(at: 7_000_000, 4096) == .failed("ENOTCONN"))
      #expect(
        Deadline(after: .seconds(2)).wait {
          watchdogs.allSatisfy { access("/proc/\($0)", F_OK) != 0 }
        }, "the watchdog stays")
      try expectNotConnected(mount)
      // An open file of a dead daemon does not prevent an unmount.
      let unmounting = try run([try Products.httpfs, "unmount", mount.mountpoint])
      #expect(unmounting.succeeded, "\(unmounting.error)")
      #expect(!mount.isMounted)
      #expect(try output(of: ["ls", mount.mountpoint]).isEmpty)
      #expect(try file.read(at: 7_000_000, 4096) == .failed("ENOTCONN"))
      file.close()
    }

    @Test(
      "68 the daemon dies: a new mount works at once, and stays",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func newMountAfterDeath(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("d.bin", length: Self.length, seed: seed)
      let digest = Digest.ofContent(seed: seed, byteCount: Self.length)
      let first = try sandbox.mount(urls: [url])
      #expect(try first.sha256("d.bin") == digest)
      // Attributes in the kernel's cache must not make the dead mount look alive.
      _ = try run(["stat", first.mountpoint])
      let held = try HeldFile(first.path("d.bin"))
      first.process.signal(SIGKILL)
      #expect(first.process.wait(within: .seconds(30)) == .signalled(SIGKILL))
      if seed.isMultiple(of: 2) { try expectNotConnected(first) }
      let second = sandbox.adopt(
        try Mount(
          source: url, mountpoint: first.mountpoint, cacheDirectory: first.cacheDirectory))
      #expect(try second.sha256("d.bin") == digest)
      #expect(try origin.requests().bodyByteCount == Self.length, "something was fetched again")
      // The first mount's watchdog has had time for a wrong reaction.
      pause(for: .milliseconds(500))
      #expect(second.isMounted)
      #expect(ProcessTable.watchdogs(of: first.mountpoint).count == 1)
      #expect(try second.sha256("d.bin") == digest)
      #expect(MountTable.entries().count { $0.mountpoint == first.mountpoint } == 1)
      held.close()
      #expect(try second.unmount() == .exited(0))
      #expect(ProcessTable.watchdogs(of: first.mountpoint).isEmpty)
    }

    @Test(
      "68 the daemon of an ordinary user dies: ENOTCONN until his next mount, or his unmount",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func deadDaemonOfUser(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try OrdinaryUserMount.make(
        sandbox, urls: [origin.url("d.bin", length: 100_000, seed: seed)])
      #expect(
        try mount.sha256("d.bin") == Digest.ofContent(seed: seed, byteCount: 100_000))
      let watchdog = try #require(ProcessTable.watchdogs(of: mount.mountpoint).first)
      // The table of mounts of the mount's namespace, which lives as long as a process in it.
      let holder = try sandbox.start(
        ["nsenter", "--target", String(watchdog), "--mount", "--", "sleep", "30"])
      #expect(
        Deadline(after: .seconds(5)).wait {
          MountTable.httpfs(at: mount.mountpoint, process: String(holder.processID)) != nil
        })
      mount.process.signal(SIGKILL)
      #expect(mount.process.wait(within: .seconds(30)) == .signalled(SIGKILL))
      let enter =
        ["nsenter", "--target", String(holder.processID), "--mount", "--"]
        + OrdinaryUserMount.asUser
      try expectNotConnected(mount, enter: enter)
      let next = sandbox.adopt(
        try Mount(
          source: sandbox.path("user-urls.txt"), mountpoint: mount.mountpoint,
          cacheDirectory: mount.cacheDirectory, launcher: enter, enter: { _ in enter }))
      #expect(try next.sha256("d.bin") == Digest.ofContent(seed: seed, byteCount: 100_000))
      let held = try HeldFile(next.path("d.bin"), enter: enter)
      next.process.signal(SIGKILL)
      #expect(next.process.wait(within: .seconds(30)) == .signalled(SIGKILL))
      try expectNotConnected(next, enter: enter)
      let unmounting = try run(enter + [try Products.httpfs, "unmount", mount.mountpoint])
      #expect(unmounting.succeeded, "\(unmounting.error)")
      #expect(MountTable.httpfs(at: mount.mountpoint, process: String(holder.processID)) == nil)
      held.close()
      holder.kill()
    }

    // MARK: 69

    @Test(
      "69 the daemon hangs: a watchdog aborts the connection, and the daemon ends",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func hungDaemon(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("h.bin", length: Self.length, seed: seed)
      // The watchdog waits at least 10 s; it asks every 5 s.
      let mount = try sandbox.mount(urls: [url], options: ["--read-timeout", "5"])
      let held = try HeldFile(mount.path("h.bin"))
      try expectRight(held, seed: seed, at: 1 << 20)
      let group = try ControlGroup(.freezer)
      try group.adopt(mount.process.processID)
      try group.setFrozen(true)
      defer { try? group.setFrozen(false) }
      let start = ContinuousClock.now
      let readers = try (0..<4).map {
        try startReader(sandbox, mount.path("h.bin"), block: 100 + $0 * 2)
      }
      for reader in readers {
        #expect(reader.wait(within: .seconds(22) - (.now - start)) == .exited(1))
        #expect(
          reader.standardError.contains("connection abort")
            || reader.standardError.contains("not connected"), "\(reader.standardError)")
      }
      print("69: readers of a hung daemon were freed after \(ContinuousClock.now - start)")
      // The daemon ends later, when it can run again.
      try expectNotConnected(mount, for: .seconds(6))
      try group.setFrozen(false)
      #expect(mount.process.wait(within: .seconds(30)) != nil, "the hung daemon stays")
      #expect(ProcessTable.watchdogs(of: mount.mountpoint).isEmpty)
      // A daemon that ends because its connection was aborted leaves the mount point unchanged,
      // too.
      try expectNotConnected(mount)
      let next = sandbox.adopt(
        try Mount(source: url, mountpoint: mount.mountpoint, cacheDirectory: mount.cacheDirectory))
      #expect(try next.sha256("h.bin") == Digest.ofContent(seed: seed, byteCount: Self.length))
      #expect(try next.unmount() == .exited(0))
    }

    // MARK: 70

    @Test(
      "70 100 stalled reads: ls and .status within 100 ms",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func stalledReads(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try stalledMount(sandbox, origin, count: 100, seed: seed, readTimeout: 5)
      let readers = try (0..<100).map {
        try startReader(sandbox, mount.path("stall\($0).bin"), block: 32 + $0 % 64)
      }
      let start = ContinuousClock.now
      let isStalled = try Deadline(after: .seconds(4)).wait(every: .milliseconds(100)) {
        try mount.status().files.count { !$0.waitingReads.isEmpty } == 100
      }
      #expect(isStalled, "not all reads wait")
      for command in [
        ["ls", mount.mountpoint], ["cat", mount.path(".status")],
        ["cat", mount.path(".status.json")],
      ] {
        let median = try MachinePace.expectQuick(command, times: 5)
        print("70: \(command[0]) with 100 stalled reads: \(median)")
      }
      for reader in readers {
        let ending = reader.wait(within: max(.zero, .seconds(10) - (.now - start)))
        #expect(ending == .exited(1), "\(reader.commandLine)")
      }
      #expect(try mount.unmount() == .exited(0))
    }

    // MARK: 74

    @Test(
      "74 umount while busy: EBUSY, and nothing is disturbed",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func busyUnmount(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 74)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("b.bin", length: Self.length, seed: seed)])
      let file = try HeldFile(mount.path("b.bin"))
      for command in [
        ["umount", mount.mountpoint], ["fusermount3", "-u", mount.mountpoint],
        [try Products.httpfs, "unmount", mount.mountpoint],
      ] {
        let result = try run(command, within: .seconds(10))
        #expect(!result.succeeded)
        #expect(result.error.contains("busy"), "\(result.error)")
        #expect(mount.isMounted)
        let place = Int64.random(in: 0..<Self.length - 65_536, using: &random)
        try expectRight(file, seed: seed, at: place)
      }
      file.close()
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "74 lazy unmount: open files go on, and all is gone within 5 s of their end",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func lazyUnmount(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("b.bin", length: Self.length, seed: seed, query: "rate=8m")])
      let file = try HeldFile(mount.path("b.bin"))
      let reader = try sandbox.start(["sha256sum", mount.path("b.bin")])
      #expect(try mount.waitForStatus(of: "b.bin") { $0.cachedByteCount > 200_000 })
      let command =
        seed.isMultiple(of: 2)
        ? ["umount", "-l", mount.mountpoint]
        : [try Products.httpfs, "unmount", "--lazy", mount.mountpoint]
      let result = try run(command, within: .seconds(5))
      #expect(result.succeeded, "\(result.error)")
      #expect(!mount.isMounted)
      #expect(reader.wait(within: .seconds(30)) == .exited(0))
      #expect(
        reader.standardOutput.prefix(64) == Digest.ofContent(seed: seed, byteCount: Self.length))
      try expectRight(file, seed: seed, at: 3_000_000)
      file.close()
      #expect(mount.process.wait(within: .seconds(30)) == .exited(0))
      #expect(ProcessTable.watchdogs(of: mount.mountpoint).isEmpty)
    }

    // MARK: 76

    @Test(
      "76 suspended for longer than any limit: deadlines restart, reads go on",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func suspended(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let stalled = "fault=stall&fault-at=0&fault-from=2"
      let mount = try sandbox.mount(
        urls: [
          origin.url("s.bin", length: Self.length, seed: seed),
          origin.url("t.bin", length: Self.length, seed: seed, query: stalled),
        ], options: ["--read-timeout", "14"])
      let early = try HeldFile(mount.path("s.bin"))
      try expectRight(early, seed: seed, at: 0)
      try output(of: ["stat", mount.path("t.bin")])
      // The answers arrive when the daemon runs again, long after the first deadlines; one never
      // arrives.
      try origin.control("*/s.bin", ["latency": "18000"])
      let places = (0..<4).map { Int64(2 + $0) << 20 }
      let readers = try places.map {
        try sandbox.start([
          "dd", "if=\(mount.path("s.bin"))", "of=/dev/null", "bs=4k", "skip=\($0 >> 12)", "count=1",
        ])
      }
      let stalledReader = try startReader(sandbox, mount.path("t.bin"), block: 64)
      #expect(
        try Deadline(after: .seconds(10)).wait {
          // All requests are in flight: a request sent after the pause would be answered too late.
          let waiting = try mount.status().files.flatMap(\.waitingReads)
          return waiting.count >= places.count + 1
            && waiting.allSatisfy { $0.reason.hasPrefix("request sent") }
        })
      mount.process.signal(SIGSTOP)
      // More than the watchdog's 10 s after a question, which it asks every 5 s.
      pause(for: .seconds(17))
      #expect(mount.isMounted, "the watchdog takes a stopped daemon for a hung one")
      mount.process.signal(SIGCONT)
      for (reader, place) in zip(readers, places) {
        let ending = reader.wait(within: .seconds(14 + 5))
        #expect(ending == .exited(0), "read at \(place): \(reader.standardError)")
      }
      try origin.control("*/s.bin", ["latency": "0"])
      // A deadline that was restarted still takes effect.
      #expect(stalledReader.wait(within: .seconds(14 + 5)) == .exited(1))
      #expect(try mount.sha256("s.bin") == Digest.ofContent(seed: seed, byteCount: Self.length))
      early.close()
      #expect(try mount.unmount() == .exited(0))
    }
  }
}
