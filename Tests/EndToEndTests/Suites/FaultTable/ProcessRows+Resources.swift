import Foundation
import Glibc
import SeededRandom
import Testing

/// Rows 71 to 73 and 75 of the fault table: descriptors, memory, crowds of readers, and the clock.
extension RealMounts.ProcessRows {
  // MARK: 71

  @Test(
    "71 64 descriptors: EMFILE for new opens only, what is open reads on",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func fewDescriptors(seed: UInt64) throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let count = 100
    let length: Int64 = 1 << 20
    let urls = (0..<count).map {
      origin.url("f\($0).bin", length: length, seed: seed &+ UInt64($0))
    }
    let list = try sandbox.write(urls.joined(separator: "\n") + "\n", to: "urls.txt")
    let mount = sandbox.adopt(
      try Mount(
        source: list, mountpoint: try sandbox.makeDirectory("mnt"),
        cacheDirectory: sandbox.path("cache"), options: ["--read-timeout", "25"],
        launcher: ["bash", "-c", "ulimit -n 64 && exec \"$@\"", "bash"]))
    let references = try sandbox.makeDirectory("references")
    for index in 0..<count {
      try TestContent.write(
        to: "\(references)/f\(index).bin", seed: seed &+ UInt64(index), byteCount: length)
    }
    let result = try run(
      Python.command(Self.manyOpens) + [mount.mountpoint, references, String(count), String(seed)],
      within: .seconds(50))
    #expect(result.succeeded, "\(result.output)\(result.error)")
    print("71: \(result.output)", terminator: "")
    #expect(mount.process.isRunning)
    #expect(try mount.status().files.count == count)
    #expect(try mount.unmount() == .exited(0))
  }

  /// Opens all files and holds them open, reading a piece of each.
  ///
  /// It then closes them, reopens each one, and reads the last one whole.
  private static let manyOpens = """
    import errno, os, random, sys, time
    from concurrent.futures import ThreadPoolExecutor
    mount, references, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    random.seed(seed)
    data = [open(f"{references}/f{i}.bin", "rb").read() for i in range(count)]
    held, refused = {}, 0
    def check(index, descriptor):
        offset = random.randrange(len(data[index]) - 4096)
        piece = os.pread(descriptor, 4096, offset)
        assert piece and piece == data[index][offset:offset + len(piece)], (index, offset)
    for index in range(count):
        try:
            held[index] = os.open(f"{mount}/f{index}.bin", os.O_RDONLY)
        except OSError as error:
            assert error.errno in (errno.EMFILE, errno.ENFILE), error
            refused += 1
    assert len(held) >= 8, len(held)
    # Every one of the open files reads on, also what only the server has, and all at once.
    with ThreadPoolExecutor(16) as pool:
        for _ in range(3):
            list(pool.map(lambda item: check(*item), held.items()))
    print(f"{len(held)} files open at once, {refused} refused with EMFILE")
    for descriptor in held.values():
        os.close(descriptor)
    end = time.monotonic() + 30
    def opened(index):
        while True:
            try:
                return os.open(f"{mount}/f{index}.bin", os.O_RDONLY)
            except OSError as error:
                # The kernel tells the daemon of a closing in its own time, after it.
                if error.errno not in (errno.EMFILE, errno.ENFILE) or time.monotonic() > end:
                    raise
                time.sleep(0.01)
    for index in range(count):
        descriptor = opened(index)
        check(index, descriptor)
        os.close(descriptor)
    with open(opened(count - 1), "rb") as file:
        assert file.read() == data[count - 1]
    """

  @Test(
    "71 64 descriptors: get waits for connections and brings every file",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func fewDescriptorsOfGet(seed: UInt64) throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    let urls = (0..<40).map {
      origin.url("g\($0).bin", length: 2 << 20, seed: seed &+ $0, query: "rate=4m")
    }
    let result = try run(
      ["bash", "-c", "ulimit -n 64 && exec \"$@\"", "bash"]
        + (try work.commandLine(["get", "--quiet", "-x", "16", "-j", "8"] + urls)))
    #expect(result.succeeded, "\(result.error)")
    for index in 0..<UInt64(40) {
      #expect(
        try work.sha256("g\(index).bin")
          == Digest.ofContent(seed: seed &+ index, byteCount: 2 << 20))
    }
  }

  // MARK: 72

  @Test(
    "72 memory pressure: 512 MiB are read with 96 MiB of memory, page cache included",
    .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
  func memoryPressure(seed: UInt64) throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let group = try ControlGroup(.memory)
    try group.setMemoryLimit(96 << 20)
    let length: Int64 = 128 << 20
    let urls = (0..<4).map {
      origin.url("m\($0).bin", length: length, seed: seed &+ UInt64($0))
    }
    let list = try sandbox.write(urls.joined(separator: "\n") + "\n", to: "urls.txt")
    let mount = sandbox.adopt(
      try Mount(
        source: list, mountpoint: try sandbox.makeDirectory("mnt"),
        cacheDirectory: sandbox.path("cache"), launcher: group.launcher))
    let readers = try (0..<4).map { try sandbox.start(["sha256sum", mount.path("m\($0).bin")]) }
    for (index, reader) in readers.enumerated() {
      #expect(reader.wait(within: .seconds(90)) == .exited(0), "\(reader.standardError)")
      #expect(
        reader.standardOutput.prefix(64)
          == Digest.ofContent(seed: seed &+ UInt64(index), byteCount: length))
    }
    #expect(try group.killCount() == 0)
    #expect(mount.process.isRunning)
    print("72: peak resident of the daemon \(try mount.peakResidentByteCount >> 20) MiB")
    #expect(try mount.unmount() == .exited(0))
  }

  // MARK: 73

  @Test(
    "73 a crowd of readers: no error, each block fetched once, at most 256 MiB",
    .timeLimit(.minutes(8)), arguments: FaultSeeds.all)
  func crowd(seed: UInt64) throws {
    let result = try LoadScript.run(
      "readers", ["--seed", String(seed), "--readers", FaultSeeds.crowd], within: .seconds(400))
    print(result.output, terminator: "")
    #expect(result.succeeded, "\(result.output)\(result.error)")
  }

  // MARK: 75

  @Test(
    "75 the clock jumps by a year, both ways: no read is late, nothing expires",
    .timeLimit(.minutes(3)), arguments: FaultSeeds.all)
  func clockJumps(seed: UInt64) throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let clock = try FakeClock(sandbox)
    let real = try clock.year()
    try clock.set(days: 365 * 2)
    // The test would prove nothing if the library did not work.
    #expect(try clock.year() >= real + 1)
    try clock.set(days: 0)
    let urls = (0..<2).map {
      origin.url("c\($0).bin", length: Self.length, seed: seed &+ $0, query: "rate=16m")
    }
    let list = try sandbox.write(urls.joined(separator: "\n") + "\n", to: "urls.txt")
    let mountpoint = try sandbox.makeDirectory("mnt")
    func mount() throws -> Mount {
      sandbox.adopt(
        try Mount(
          source: list, mountpoint: mountpoint, cacheDirectory: sandbox.path("cache"),
          options: ["--read-timeout", "5"], launcher: clock.launcher))
    }
    var random = SeededGenerator(seed: seed &* 75)
    let first = try mount()
    let readers = try (0..<2).map { try sandbox.start(["sha256sum", first.path("c\($0).bin")]) }
    let file = try HeldFile(first.path("c0.bin"))
    let jumps = [365, -365, 0].shuffled(using: &random)
    for days in jumps {
      try clock.set(days: days)
      let offset = Int64.random(in: 0..<Self.length - 4096, using: &random)
      let start = ContinuousClock.now
      let expected = Digest.ofContent(seed: seed, offset: offset, byteCount: 4096)
      #expect(try file.read(at: offset, 4096) == .bytes(count: 4096, sha256: expected))
      let duration = ContinuousClock.now - start
      #expect(duration < .seconds(3), "\(days) days: \(duration)")
      pause(for: .milliseconds(300))
    }
    for (index, reader) in readers.enumerated() {
      #expect(reader.wait(within: .seconds(60)) == .exited(0), "\(reader.standardError)")
      #expect(
        reader.standardOutput.prefix(64)
          == Digest.ofContent(seed: seed &+ UInt64(index), byteCount: Self.length))
    }
    file.close()
    #expect(try first.unmount() == .exited(0))
    let fetched = try origin.requests().bodyByteCount
    // The read at each jump cuts a request short, and the bytes in its sockets are sent twice. If
    // the cache were forgotten, all bytes would be.
    let cut = Int64(jumps.count) << 21
    #expect(fetched <= 2 * Self.length + cut, "something was fetched twice: \(fetched)")

    // A later mount, with a clock of another year, finds the cache.
    for days in jumps {
      try clock.set(days: days)
      let next = try mount()
      for index in 0..<UInt64(2) {
        #expect(
          try next.sha256("c\(index).bin")
            == Digest.ofContent(seed: seed &+ index, byteCount: Self.length))
      }
      #expect(try next.unmount() == .exited(0))
    }
    #expect(try origin.requests().bodyByteCount == fetched, "the cache has expired")
  }
}
