import Glibc
import Testing

/// A disk under the cache that is slower than the network, or stalls.
extension RealMounts {
  @Suite struct SlowDisks {
    @Test(.timeLimit(.minutes(3)))
    func `a disk frozen for a minute holds up no look-up, open, status or read`() throws {
      let sandbox = try Sandbox()
      let disk = try LoopDisk(
        at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.img"), byteCount: 256 << 20
      )
      defer { disk.unmount() }
      let origin = try OriginServer()
      let length: Int64 = 32 << 20
      let big = RemoteTestFile(name: "big.bin", seed: 821, byteCount: length)
      // More files than libfuse has threads.
      let small = (0..<12).map {
        RemoteTestFile(name: "small\($0).bin", seed: UInt64(830 + $0), byteCount: 100_000)
      }
      let urls = ([big] + small).map { $0.url(origin) }
      let first = try sandbox.mount(urls: urls, cache: "disk/cache")
      for file in small { #expect(try first.sha256(file.name) == file.digest) }
      #expect(try first.unmount() == .exited(0))
      // The kernel does not know these names: to open them for writing waits for the disk.
      try disk.reboot()

      let mount = try sandbox.mount(
        urls: urls, options: ["--read-timeout", "8", "--connections", "2"], cache: "disk/cache")
      defer {
        try? disk.setFrozen(false)
        mount.tearDown()
      }
      #expect(try mount.sha256("small0.bin") == small[0].digest)
      let held = try HeldFile(mount.path(big.name))
      _ = try held.read(at: 0, 65_536)
      // The bytes that have arrived by then are committed.
      pause(for: .seconds(5))
      try disk.setFrozen(true)
      let start = ContinuousClock.now
      let looks = try small.dropFirst().map { try sandbox.start(["stat", mount.path($0.name)]) }
      let open = try sandbox.start(["sha256sum", mount.path("small0.bin")])
      pause(for: .milliseconds(500))
      // Longer than the watchdog waits.
      for round in 0..<12 {
        for command in [
          ["ls", mount.mountpoint], ["cat", mount.path(".status")],
          ["stat", "--file-system", mount.mountpoint],
        ] {
          try MachinePace.expectQuick(command, times: 3)
        }
        let place = Int64(4 + 2 * round) << 20
        let expected = HeldFile.Reading.bytes(
          count: 65_536,
          sha256: Digest.ofContent(seed: big.seed, offset: place, byteCount: 65_536))
        var reading: HeldFile.Reading?
        let duration = try elapsed { reading = try held.read(at: place, 65_536) }
        #expect(reading == expected, "\(String(describing: reading))")
        #expect(duration < .seconds(8), "a read of bytes that only the server has: \(duration)")
        pause(for: .milliseconds(4500))
      }
      for look in looks {
        #expect(look.wait(within: .seconds(1)) == .exited(0), "\(look.standardError)")
      }
      // The file may have been opened without the cache, whose threads all wait for the disk.
      #expect(open.wait(within: .seconds(1)) == .exited(0), "\(open.standardError)")
      #expect(open.standardOutput.hasPrefix(small[0].digest))
      #expect(ContinuousClock.now - start > .seconds(54))
      #expect(mount.process.isRunning)
      #expect(mount.isMounted)
      try disk.setFrozen(false)

      held.close()
      for file in [big] + small { #expect(try mount.sha256(file.name) == file.digest) }
      #expect(!mount.process.standardError.contains("suspended"))
      #expect(try mount.unmount() == .exited(0))
      let next = try sandbox.mount(urls: urls, cache: "disk/cache")
      for file in [big] + small { #expect(try next.sha256(file.name) == file.digest) }
      #expect(try next.unmount() == .exited(0))
    }

    @Test(.timeLimit(.minutes(1)))
    func `a frozen cache disk does not hold up SIGHUP`() throws {
      let sandbox = try Sandbox()
      let disk = try LoopDisk(
        at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.img"), byteCount: 64 << 20)
      defer { disk.unmount() }
      let origin = try OriginServer()
      let urls = ["a.bin", "b.bin"].map { origin.url($0, length: 100_000, seed: 850) }
      let list = try sandbox.write(urls[0] + "\n", to: "urls.txt")
      let mount = try sandbox.mount(source: list, cache: "disk/cache")
      defer {
        try? disk.setFrozen(false)
        mount.tearDown()
      }
      _ = try mount.sha256("a.bin")
      // What the commands of the control file do is queued behind this one.
      try disk.setFrozen(true)
      let evict = try sandbox.start(["sh", "-c", "echo evict a.bin > \(mount.path(".control"))"])
      pause(for: .seconds(1))
      try sandbox.write(urls.map { $0 + "\n" }.joined(), to: "urls.txt")
      mount.process.signal(SIGHUP)
      let isThere = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
        try output(of: ["ls", mount.mountpoint]) == "a.bin\nb.bin\n"
      }
      #expect(isThere)
      try disk.setFrozen(false)
      _ = evict.wait(within: .seconds(10))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(.timeLimit(.minutes(1)))
    func `a slow disk delays the end of a mount little, however much is not committed`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // A commit of each file would take 10 s, twice the longest wait of an unmount for the disk.
      let files = (0..<20).map {
        RemoteTestFile(name: "f\($0).bin", seed: UInt64(840 + $0), byteCount: 100_000)
      }
      let urls = files.map { $0.url(origin) }
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      let mount = try sandbox.mount(urls: urls, failing: failing)
      let start = ContinuousClock.now
      try output(of: ["sha256sum"] + files.map { mount.path($0.name) })
      // After 2 s the mount itself begins to commit: on such a slow machine the test shows nothing.
      let isFresh = ContinuousClock.now - start < .milliseconds(1500)
      let before = Self.commitCount(below: failing.directory)
      try failing.fail(
        FailingCalls.Plan(calls: "fsync,fdatasync", count: nil, errno: 100, effect: .slow))
      var ending: ChildProcess.Ending?
      let duration = try elapsed { ending = try mount.unmount() }
      #expect(ending == .exited(0))
      // Commits that begin within 0.7 s, with a sync of 0.1 s each.
      let commitCount = Self.commitCount(below: failing.directory) - before
      if isFresh {
        let isInTime = try MachinePace.keeps(duration, within: .seconds(3))
        #expect(isInTime, "\(duration)")
        #expect((1...8).contains(commitCount), "\(commitCount) commits in \(duration)")
      }
      failing.pass()

      // Uncommitted bytes are verified, not fetched.
      let next = try sandbox.mount(urls: urls, cache: "cache")
      for file in files { #expect(try next.sha256(file.name) == file.digest) }
      #expect(try next.unmount() == .exited(0))
      let expected: Int64 = files.reduce(0) { $0 + $1.byteCount }
      #expect(try origin.requests().bodyByteCount <= expected + 64 << 10)
    }

    /// The number of files of a cache with committed bytes.
    private static func commitCount(below cache: String) -> Int {
      FileStatus.files(named: "record", below: cache).count { path in
        (try? CacheRecord(path: path))?.commits.isEmpty == false
      }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a disk that stands still holds up no piece that a hash must confirm`() throws {
      let sandbox = try Sandbox()
      let disk = try LoopDisk(
        at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.img"), byteCount: 128 << 20
      )
      defer { disk.unmount() }
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "file.bin", seed: 812, byteCount: 16 << 20)
      let document = PieceMetalink(
        file: file, pieceByteCount: 1 << 20, urls: [file.url(origin, query: "total-rate=12m")])
      let source = try sandbox.write(document.text, to: "pieces.meta4")
      let mount = try sandbox.mount(
        source: source, options: ["--read-timeout", "8"], cache: "disk/cache")
      defer { mount.tearDown() }

      let reader = try sandbox.start(["sha256sum", mount.path(file.name)])
      // Some pieces are in the cache, some wait for their hash, and some have not arrived.
      let hasBegun = try mount.waitForStatus(of: file.name, within: .seconds(30)) {
        $0.cachedByteCount > 2 << 20
      }
      #expect(hasBegun)
      try disk.setFrozen(true)
      #expect(reader.wait(within: .seconds(30)) == .exited(0), "\(reader.standardError)")
      #expect(reader.standardOutput.hasPrefix(file.digest))
      try disk.setFrozen(false)
      #expect(try mount.sha256(file.name) == file.digest)
      #expect(try mount.unmount() == .exited(0))

      let next = try sandbox.mount(source: source, cache: "disk/cache")
      #expect(try next.sha256(file.name) == file.digest)
      #expect(try next.unmount() == .exited(0))
    }

    @Test(.timeLimit(.minutes(2)))
    func `a prefetch waits for a disk that stands still, and is all in the cache after that`()
      throws
    {
      let sandbox = try Sandbox()
      let disk = try LoopDisk(
        at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.img"), byteCount: 128 << 20
      )
      defer { disk.unmount() }
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "file.bin", seed: 813, byteCount: 24 << 20)
      let document = PieceMetalink(
        file: file, pieceByteCount: 1 << 20, urls: [file.url(origin, query: "total-rate=12m")])
      let source = try sandbox.write(document.text, to: "prefetched.meta4")
      let mount = try sandbox.mount(source: source, cache: "disk/cache")
      defer { mount.tearDown() }

      #expect(try mount.control("prefetch \(file.name)\n") == nil)
      let hasBegun = try mount.waitForStatus(of: file.name, within: .seconds(30)) {
        $0.cachedByteCount > 4 << 20
      }
      #expect(hasBegun)
      try disk.setFrozen(true)
      pause(for: .seconds(8))
      #expect(try mount.status(of: file.name).state != "complete")
      try disk.setFrozen(false)
      let isComplete = try mount.waitForStatus(of: file.name, within: .seconds(40)) {
        $0.state == "complete"
      }
      #expect(isComplete)
      // The bytes in flight went to memory, and are fetched once more later.
      #expect(try origin.bodyByteCount(of: file) < 2 * file.byteCount)
      #expect(try mount.unmount() == .exited(0))
      origin.stop()

      let next = try sandbox.mount(
        source: source, options: ["--read-timeout", "5"], cache: "disk/cache")
      #expect(try next.sha256(file.name) == file.digest)
      #expect(try next.unmount() == .exited(0))
    }

    @Test(.timeLimit(.minutes(1)))
    func `a disk that hangs in reads of cached bytes holds up nothing else`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "a.bin", seed: 814, byteCount: 8 << 20)
      let other = RemoteTestFile(name: "b.bin", seed: 815, byteCount: 8 << 20)
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      let mount = try sandbox.mount(
        urls: [file.url(origin), other.url(origin)], options: ["--read-timeout", "8"],
        failing: failing)
      defer {
        failing.pass()
        mount.tearDown()
      }
      // Do not read all of it, so the kernel does not read it directly.
      let held = try HeldFile(mount.path(file.name))
      _ = try held.read(at: 0, 65_536)
      #expect(
        try mount.waitForStatus(of: file.name) { $0.cachedByteCount >= 65_536 })
      try failing.fail(
        FailingCalls.Plan(calls: "fstat", filePrefix: "data", count: nil, effect: .held))
      // More readers than libfuse has threads.
      let readers = try (0..<12).map { _ in
        try sandbox.start([
          "dd", "if=\(mount.path(file.name))", "bs=4096", "count=1", "iflag=direct", "of=/dev/null",
        ])
      }
      pause(for: .seconds(1))
      for command in [
        ["stat", "--file-system", mount.mountpoint], ["ls", mount.mountpoint],
        ["cat", mount.path(".status")],
      ] {
        try MachinePace.expectQuick(command, times: 3)
      }
      failing.pass()
      for reader in readers {
        #expect(reader.wait(within: .seconds(10)) == .exited(0), "\(reader.standardError)")
      }
      held.close()
      #expect(try mount.sha256(file.name) == file.digest)
    }

    private static let length: Int64 = 96 << 20
    /// The number of bytes that stay in memory and need not be fetched again.
    private static let memoryByteCount: Int64 = 32 << 20

    @Test(.timeLimit(.minutes(2)))
    func `a disk that stands still costs no request twice, and reads go on without it`() throws {
      let sandbox = try Sandbox()
      let disk = try LoopDisk(
        at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.img"), byteCount: 512 << 20
      )
      defer { disk.unmount() }
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "file.bin", seed: 811, byteCount: Self.length)
      let mount = try sandbox.mount(
        urls: [file.url(origin, query: "total-rate=24m")],
        options: ["--stall-timeout", "2"], cache: "disk/cache")
      defer { mount.tearDown() }

      let reader = try sandbox.start(["sha256sum", mount.path(file.name)])
      let begun = try mount.waitForStatus(of: file.name, within: .seconds(30)) {
        $0.cachedByteCount > 8 << 20
      }
      #expect(begun)
      try disk.setFrozen(true)
      let held = try mount.status(of: file.name)
      // Memory serves the read, which does not wait for the disk.
      #expect(reader.wait(within: .seconds(30)) == .exited(0), "\(reader.standardError)")
      #expect(reader.standardOutput.hasPrefix(file.digest))
      // Much longer than a server may be silent.
      pause(for: .seconds(4))
      for command in [
        ["stat", "--file-system", mount.mountpoint], ["stat", mount.path(file.name)],
        ["cat", mount.path(".status.json")],
      ] {
        let result = try run(command, within: .seconds(10))
        #expect(result.succeeded, "\(result.commandLine): \(result.error)")
        #expect(result.duration < .seconds(2), "\(result.commandLine): \(result.duration)")
      }
      let frozen = try mount.status(of: file.name)
      #expect(frozen.retries == held.retries)
      // When reads begin to be served from memory, the requests in flight are cut short and
      // repeated once.
      #expect(try origin.bodyByteCount(of: file) - Self.length < 16 << 20)
      try disk.setFrozen(false)

      // Most bytes were discarded, are fetched again, and are kept this time. The kernel has the
      // pages.
      let again = try run(
        [
          "sh", "-c", "dd if='\(mount.path(file.name))' bs=1M iflag=direct status=none | sha256sum",
        ],
        within: .seconds(60))
      #expect(again.output.hasPrefix(file.digest), "\(again.error)")
      #expect(
        try mount.waitForStatus(of: file.name, within: .seconds(30)) {
          $0.cachedByteCount >= Self.length - Self.memoryByteCount
        })
      #expect(try mount.cacheFailure() == nil)
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(.timeLimit(.minutes(2)))
    func `a slow sync pauses a download that can be resumed, and no other`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let length: Int64 = 96 << 20
      let urls = [
        origin.url("a.bin", length: length, seed: 72),
        origin.url("b.bin", length: length, seed: 72, query: "validators=none"),
      ]
      let failing = try FailingCalls(below: work.directory, in: work.sandbox)
      try failing.fail(FailingCalls.Plan(calls: "fdatasync", count: nil, effect: .held))
      let process = try work.sandbox.start(
        try failing.launcher
          + [Products.httpfs, "get", "--jobs", "2", "-o", work.directory] + urls)
      func storedByteCount(of name: String) -> Int64 {
        FileStatus.allocatedByteCount(of: work.path(name + ".httpfs-part")) ?? 0
      }
      // A loss of power would cost all of this file in any case.
      let isWhole = Deadline(after: .seconds(30)).wait { storedByteCount(of: "b.bin") >= length }
      #expect(isWhole)
      // A loss of power would cost at most 64 MiB of this file.
      #expect(storedByteCount(of: "a.bin") <= 64 << 20)
      #expect(try failing.calls().contains { $0.outcome == .held })
      failing.pass()
      #expect(process.wait(within: .seconds(60)) == .exited(0))
      let digest = Digest.ofContent(seed: 72, byteCount: length)
      for name in ["a.bin", "b.bin"] { #expect(try work.sha256(name) == digest) }
    }

    @Test(.timeLimit(.minutes(3)))
    func `looking ahead on a slow disk leaves descriptors to programs`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("root")
      let names = (100..<250).map { "f\($0).bin" }
      for name in names {
        try sandbox.write([UInt8](repeating: 7, count: 20_000), to: "root/" + name)
      }
      let server = try ListingServer(.python, root: root, in: sandbox)
      let first = try sandbox.mount(source: server.url())
      let digest = try output(of: ["sha256sum", "\(root)/\(names[0])"]).prefix(64)
      for name in names { #expect(try first.sha256(name) == digest) }
      #expect(try first.unmount() == .exited(0))

      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      let limit = ["bash", "-c", "ulimit -n 96 && exec \"$@\"", "bash"]
      let mount = sandbox.adopt(
        try Mount(
          source: server.url(), mountpoint: try sandbox.makeDirectory("second"),
          cacheDirectory: failing.directory, launcher: limit + failing.launcher))
      // Milliseconds for each call.
      try failing.fail(FailingCalls.Plan(calls: "fstat", count: nil, errno: 40, effect: .slow))
      // In order, which makes the mount look into the cache for the following names.
      let walk = try run(["stat"] + names.prefix(60).map { mount.path($0) })
      #expect(walk.succeeded, "\(walk.error)")
      for name in names.prefix(20) { #expect(try mount.sha256(name) == digest) }
      failing.pass()
      #expect(try mount.unmount() == .exited(0))
      #expect(!mount.process.standardError.contains("too many open files"))
    }

    @Test(.timeLimit(.minutes(2)))
    func `a disk that stands still under one download holds up no other`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let digest = Digest.ofContent(seed: 71, byteCount: 8 << 20)
      let urls = ["a.bin", "b.bin"].map { origin.url($0, length: 8 << 20, seed: 71) }
      let failing = try FailingCalls(below: work.directory, in: work.sandbox)
      // The call that sizes the partial file of the first one.
      try failing.fail(
        FailingCalls.Plan(calls: "ftruncate", filePrefix: "a.bin.httpfs-part", effect: .held))
      let process = try work.sandbox.start(
        try failing.launcher
          + [Products.httpfs, "get", "--jobs", "2", "-o", work.directory] + urls)
      let isDone = Deadline(after: .seconds(30)).wait {
        access(work.path("b.bin"), F_OK) == 0
      }
      #expect(isDone)
      #expect(process.isRunning)
      #expect(try failing.calls().contains { $0.outcome == .held })
      #expect(access(work.path("a.bin"), F_OK) != 0)
      failing.pass()
      #expect(process.wait(within: .seconds(60)) == .exited(0))
      for name in ["a.bin", "b.bin"] { #expect(try work.sha256(name) == digest) }
    }
  }
}
