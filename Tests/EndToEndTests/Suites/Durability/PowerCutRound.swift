import Foundation
import Glibc
import SeededRandom

/// A mount whose cache disk loses its power at a random moment of random reads, and what the next
/// mount finds after the disk's recovery.
struct PowerCutRound {
  /// Bytes that travelled twice.
  private(set) var repeatedByteCount: Int64 = 0
  /// Bytes that were stored so long before the cut that they must not be lost, and were.
  private(set) var overdueByteCount: Int64 = 0
  /// Bytes that were stored so long before the cut.
  private(set) var oldByteCount: Int64 = 0
  private(set) var readCount = 0
  /// Bytes that the records claimed before the cut and after it.
  private(set) var claimedByteCounts: (before: Int64, after: Int64) = (0, 0)
  private(set) var violations: [String] = []

  private static let fileCount = 4
  /// So slow that the download goes on when the power is cut.
  private static let rate: Int64 = 20 << 20
  private static let longestLife = 5500
  /// The 2 s after which a checkpoint is due, and what it takes to be noticed and to reach the
  /// disk.
  private static let checkpointAge = Duration.milliseconds(3500)

  /// Runs one round.
  ///
  /// - Parameters:
  ///   - seed: decides lengths, places and the moment.
  ///   - disk: where the cache is; the round takes its cache away again.
  ///   - sandbox: where mounts are.
  ///   - origin: whose log is cleared.
  /// - Throws: `HarnessError` where something cannot be started or mounted.
  init(seed: UInt64, on disk: LoopDisk, in sandbox: Sandbox, _ origin: OriginServer) throws {
    var random = SeededGenerator(seed: seed &* 104_729 &+ 5)
    let lengths = (0..<Self.fileCount).map { _ in
      Int64.random(in: (10 << 20)...(40 << 20), using: &random)
    }
    let life = Duration.milliseconds(Int.random(in: 100...Self.longestLife, using: &random))
    let seeds = lengths.indices.map { seed &* 10 &+ UInt64($0) }
    let names = lengths.indices.map { "p\($0).bin" }
    let urls = lengths.indices.map { index in
      origin.url(names[index], length: lengths[index], seed: seeds[index])
    }
    // Taken back afterwards: nothing is measured but bytes.
    try origin.control("*/p?.bin", ["total-rate": "\(Self.rate)"])
    let cache = "\(disk.path)/cache-\(seed)"
    // For good: a removal that was not synced is undone by the next cut, until the disk is full.
    defer { try? disk.empty() }
    try origin.clearLog()

    let first = try Self.mount(urls, cache: cache, in: sandbox)
    let files = lengths.indices.map { index in
      RandomReader.File(
        path: first.path(names[index]), seed: seeds[index], byteCount: lengths[index])
    }
    let reader = try RandomReader(files, seed: seed, in: sandbox)
    let begun = ContinuousClock.now
    pause(for: max(.zero, life - Self.checkpointAge))
    let old = Self.records(below: cache)
    pause(for: max(.zero, life - (.now - begun)))
    claimedByteCounts.before = Self.claimedByteCount(below: cache)
    let cut = ContinuousClock.now
    try disk.cutPower()
    // Everything else would be gone in the same moment: the daemon sees a broken disk till then.
    try first.crash()
    let (readCount, mistakes) = reader.stop()
    self.readCount = readCount
    violations += mistakes
    let before = try origin.requests()
    let measured = (.now - cut).seconds
    if measured > 5 { violations.append("the cut took \(measured) s") }
    try disk.reboot()
    claimedByteCounts.after = Self.claimedByteCount(below: cache)
    if life > Self.checkpointAge {
      let survivors = Self.records(below: cache)
      for (path, record) in old {
        oldByteCount += record.byteCount
        overdueByteCount += record.byteCount(notCommittedIn: survivors[path])
      }
    }

    try origin.clearLog()
    try origin.clearControl()
    let second = try Self.mount(urls, cache: cache, in: sandbox)
    for index in names.indices {
      let digest = Digest.ofContent(seed: seeds[index], byteCount: lengths[index])
      if try second.sha256(names[index]) != digest {
        violations.append("WRONG BYTES in \(names[index])")
      }
    }
    let ending = try second.unmount()
    if ending != .exited(0) { violations.append("httpfs ended with \(ending)") }
    let after = try origin.requests()
    repeatedByteCount = before.bodyByteCount + after.bodyByteCount - lengths.reduce(0, +)
    violations = violations.map { "seed \(seed), cut after \(life): \($0)" }
  }

  private static func mount(
    _ urls: [String], cache: String, in sandbox: Sandbox
  ) throws -> Mount {
    let name = "cut-\(UUID().uuidString)"
    let list = try sandbox.write(urls.joined(separator: "\n") + "\n", to: "\(name).txt")
    return sandbox.adopt(
      try Mount(
        source: list, mountpoint: try sandbox.makeDirectory(name), cacheDirectory: cache))
  }

  private static func claimedByteCount(below cache: String) -> Int64 {
    records(below: cache).values.reduce(0) { $0 + $1.byteCount }
  }

  /// What the records claim, by their paths.
  private static func records(below cache: String) -> [String: CacheRecord] {
    let paths = FileStatus.files(named: "record", below: cache)
    return paths.reduce(into: [:]) { $0[$1] = try? CacheRecord(path: $1) }
  }
}
