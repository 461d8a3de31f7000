import Foundation
import Glibc
import SeededRandom

/// A mount that is killed at a random moment of random reads, and what its successor finds.
struct KillRound {
  /// Bytes that travelled twice.
  private(set) var repeatedByteCount: Int64 = 0
  /// Bytes that were in the cache when the daemon was killed.
  private(set) var cachedByteCount: Int64 = 0
  private(set) var readCount = 0
  private(set) var violations: [String] = []

  private static let fileCount = 4
  /// Bytes per second over all connections, so that a random moment falls into the download.
  private static let rate: Int64 = 48 << 20
  private static let longestLife = 700

  /// Runs one round.
  ///
  /// - Parameters:
  ///   - seed: decides lengths, places and the moment.
  ///   - sandbox: where mounts and caches are; the round takes its cache away again.
  ///   - origin: whose log is cleared.
  /// - Throws: `HarnessError` where something cannot be started or mounted.
  init(seed: UInt64, in sandbox: Sandbox, _ origin: OriginServer) throws {
    var random = SeededGenerator(seed: seed &* 7919 &+ 11)
    let lengths = (0..<Self.fileCount).map { _ in Int64.random(in: 1...(9 << 20), using: &random) }
    let life = Duration.milliseconds(Int.random(in: 5...Self.longestLife, using: &random))
    let seeds = lengths.indices.map { seed &* 10 &+ UInt64($0) }
    let names = lengths.indices.map { "k\($0).bin" }
    let urls = lengths.indices.map { index in
      origin.url(
        names[index], length: lengths[index], seed: seeds[index], query: "total-rate=\(Self.rate)")
    }
    let cache = "cache-\(seed)"
    defer { try? FileManager.default.removeItem(atPath: sandbox.path(cache)) }
    try origin.clearLog()

    let first = try sandbox.mount(urls: urls, cache: cache)
    let files = lengths.indices.map { index in
      RandomReader.File(
        path: first.path(names[index]), seed: seeds[index], byteCount: lengths[index])
    }
    let reader = try RandomReader(files, seed: seed, in: sandbox)
    pause(for: life)
    try first.crash()
    let (readCount, mistakes) = reader.stop()
    self.readCount = readCount
    violations += mistakes
    for path in FileStatus.files(named: "record", below: first.cacheDirectory) {
      // A record that is not whole yet claims nothing.
      cachedByteCount += (try? CacheRecord(path: path))?.byteCount ?? 0
    }

    let second = try sandbox.mount(urls: urls, cache: cache)
    for index in names.indices {
      let digest = Digest.ofContent(seed: seeds[index], byteCount: lengths[index])
      if try second.sha256(names[index]) != digest {
        violations.append("WRONG BYTES in \(names[index])")
      }
    }
    let ending = try second.unmount()
    if ending != .exited(0) { violations.append("httpfs ended with \(ending)") }
    repeatedByteCount = try origin.requests().bodyByteCount - lengths.reduce(0, +)
    if repeatedByteCount < 0 { violations.append("\(repeatedByteCount) bytes travelled twice") }
    violations = violations.map { "seed \(seed), killed after \(life): \($0)" }
  }
}
