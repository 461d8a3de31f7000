import Foundation
import Glibc
import Testing

/// A complete file after a remount.
///
/// It is passed through from the first open, unless the cached file may have changed.
extension RealMounts {
  @Suite(
    .timeLimit(.minutes(3)),
    .enabled(if: Host.isRoot, "needs root: the kernel allows passthrough to CAP_SYS_ADMIN only"),
    .enabled(if: Host.kernelHasPassthrough, "needs Linux 6.9 for FUSE passthrough"))
  struct Remounts {
    /// The file is longer than the part that the first open always verifies.
    private static let file = RemoteTestFile(name: "r.bin", seed: 91, byteCount: 80 << 20)
    /// The bytes that a mount may fetch of a cached file: a confirmation.
    private static let slack: Int64 = 64 << 10

    /// A file, and the cache that its mounts share.
    private struct Cached {
      let sandbox: Sandbox
      let origin: OriginServer
      /// The cache directory.
      let path: String

      init(on disk: LoopDisk? = nil, sandbox: Sandbox? = nil) throws {
        let sandbox = try sandbox ?? Sandbox()
        self.sandbox = sandbox
        origin = try OriginServer()
        path = disk.map { "\($0.path)/cache" } ?? sandbox.path("cache")
        try #require(
          Host.isOrdinaryFileSystem(sandbox.directory),
          "the temporary directory is on a stacked file system: set TMPDIR to one that is not")
      }

      func mount() throws -> Mount {
        let name = "mnt-\(UUID().uuidString)"
        return sandbox.adopt(
          try Mount(
            source: try sandbox.write(file.url(origin) + "\n", to: "\(name).txt"),
            mountpoint: try sandbox.makeDirectory(name), cacheDirectory: path))
      }

      /// Reads the whole file through a mount, and ends the mount.
      func readByMount() throws {
        let mount = try mount()
        #expect(try mount.sha256(file.name) == file.digest)
        #expect(try mount.unmount() == .exited(0))
      }

      func record() throws -> CacheRecord {
        try CacheRecord(path: try #require(FileStatus.files(named: "record", below: path).first))
      }

      func dataPath() throws -> String {
        let record = try #require(FileStatus.files(named: "record", below: path).first)
        let directory = (record as NSString).deletingLastPathComponent
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        return "\(directory)/\(try #require(names.first { $0.hasPrefix("data-") }))"
      }

      func flipBit(at offset: Int64) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: dataPath()))
        defer { try? handle.close() }
        try handle.seek(toOffset: UInt64(offset))
        let byte = try #require(try handle.read(upToCount: 1)?.first)
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: [byte ^ 0x10])
      }

      /// Checks whether the first open of a new mount is passed through.
      ///
      /// It reads the whole file, which must be right and fetch at most `limit` bytes.
      ///
      /// - Returns: whether it was passed through, and how many bytes were found damaged.
      func remount(
        fetching limit: Int64 = slack
      ) throws -> (isPassedThrough: Bool, damagedByteCount: Int64) {
        try origin.clearLog()
        let mount = try mount()
        let held = try HeldFile(mount.path(file.name))
        let isPassedThrough = try mount.status(of: file.name).passthrough
        let place: Int64 = 70_000_000
        #expect(
          try held.read(at: place, 4096)
            == .bytes(
              count: 4096,
              sha256: Digest.ofContent(seed: file.seed, offset: place, byteCount: 4096)))
        #expect(try mount.sha256(file.name) == file.digest)
        held.close()
        let damaged = try mount.status(of: file.name).damagedByteCount
        #expect(try mount.unmount() == .exited(0))
        #expect(try origin.bodyByteCount(of: file) <= limit)
        return (isPassedThrough, damaged)
      }
    }

    @Test func `what a mount has read whole, the next one passes through at its first open`() throws
    {
      let cached = try Cached()
      try cached.readByMount()
      #expect(try cached.record().isStamped)
      for _ in 0..<2 { #expect(try cached.remount() == (true, 0)) }
    }

    @Test func `a byte that was changed in between is found, fetched again and counted`() throws {
      let cached = try Cached()
      try cached.readByMount()
      try cached.flipBit(at: 50_000_000)
      let (isPassedThrough, damaged) = try cached.remount(fetching: 1 << 20)
      #expect(!isPassedThrough)
      #expect(damaged > 0)
      // All of it has been verified, so it is again treated as intact.
      #expect(try cached.remount() == (true, 0))
    }

    @Test func `a byte that was changed under the mount is found by the next one`() throws {
      let cached = try Cached()
      let mount = try cached.mount()
      #expect(try mount.sha256(Self.file.name) == Self.file.digest)
      try cached.flipBit(at: 50_000_000)
      #expect(try mount.unmount() == .exited(0))
      let (isPassedThrough, damaged) = try cached.remount(fetching: 1 << 20)
      #expect(!isPassedThrough)
      #expect(damaged > 0)
    }

    @Test func `what has been touched without a change is verified once`() throws {
      let cached = try Cached()
      try cached.readByMount()
      try shell("touch \(quoted(try cached.dataPath()))")
      #expect(try cached.remount() == (false, 0))
      #expect(try cached.remount() == (true, 0))
    }

    @Test func `a killed mount leaves its stamp, which is believed while it is true`() throws {
      let cached = try Cached()
      let mount = try cached.mount()
      #expect(try mount.sha256(Self.file.name) == Self.file.digest)
      // The checkpoint, and then the stamp.
      let isStamped = try Deadline(after: .seconds(60)).wait { try cached.record().isStamped }
      #expect(isStamped)
      try mount.crash()
      #expect(try cached.remount() == (true, 0))
      try cached.flipBit(at: 1)
      let (isPassedThrough, damaged) = try cached.remount(fetching: 1 << 20)
      #expect(!isPassedThrough)
      #expect(damaged > 0)
    }

    @Test func `a mount that is killed before its stamp costs no more than one look`() throws {
      let cached = try Cached()
      let mount = try cached.mount()
      #expect(try mount.sha256(Self.file.name) == Self.file.digest)
      try mount.crash()
      #expect(try cached.remount().damagedByteCount == 0)
      #expect(try cached.remount() == (true, 0))
    }

    @Test func `a file system that was mounted anew is not believed by its times`() throws {
      let sandbox = try Sandbox()
      let disk = try LoopDisk(
        at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.image"),
        byteCount: 200 << 20)
      let cached = try Cached(on: disk, sandbox: sandbox)
      try cached.readByMount()
      #expect(try cached.remount() == (true, 0))
      try disk.reboot()
      #expect(try cached.remount() == (false, 0))
      #expect(try cached.remount() == (true, 0))
    }
  }
}
