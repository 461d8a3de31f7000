import Foundation
import Glibc
import SeededRandom

/// A mount that is killed at a random moment of random reads, and the state that its successor
/// finds.
struct KillRound {
  /// Bytes that were sent twice.
  private(set) var repeatedByteCount: Int64 = 0
  /// Bytes that were in the cache when the daemon was killed.
  private(set) var cachedByteCount: Int64 = 0
  private(set) var readCount = 0
  private(set) var violations: [String] = []

  /// The files to read, and the time of the kill.
  struct Scale: Sendable {
    fileprivate let lengths: ClosedRange<Int64>
    /// Bytes per second over all connections, so a random moment falls into the download.
    fileprivate let rate: Int64
    /// The bytes that are in the cache before the kill.
    let minimumCachedByteCount: Int64
    /// The milliseconds from then to the kill.
    fileprivate let lives: ClosedRange<Int>

    /// A kill at any moment, including of files that have hardly begun or are complete.
    static let anyMoment = Scale(
      lengths: 1...(9 << 20), rate: 48 << 20, minimumCachedByteCount: 0, lives: 5...700)
    /// A kill at a moment when a total loss would exceed the bound of 16 MiB three times.
    static let muchToLose = Scale(
      lengths: (22 << 20)...(28 << 20), rate: 64 << 20, minimumCachedByteCount: 48 << 20,
      lives: 0...150)
  }

  private static let fileCount = 4

  /// Runs one round.
  ///
  /// - Parameters:
  ///   - seed: determines lengths, places and the moment.
  ///   - scale: the bounds of the random values.
  ///   - sandbox: the place of mounts and caches; the round removes its cache.
  ///   - origin: the server, whose log is cleared.
  /// - Throws: `HarnessError` if something cannot be started or mounted.
  init(seed: UInt64, _ scale: Scale, in sandbox: Sandbox, _ origin: OriginServer) throws {
    var random = SeededGenerator(seed: seed &* 7919 &+ 11)
    let lengths = (0..<Self.fileCount).map { _ in
      Int64.random(in: scale.lengths, using: &random)
    }
    let life = Duration.milliseconds(Int.random(in: scale.lives, using: &random))
    let seeds = lengths.indices.map { seed &* 10 &+ UInt64($0) }
    let names = lengths.indices.map { "k\($0).bin" }
    let urls = lengths.indices.map { index in
      origin.url(
        names[index], length: lengths[index], seed: seeds[index], query: "total-rate=\(scale.rate)")
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
    if scale.minimumCachedByteCount > 0 {
      let isFull = Deadline(after: .seconds(20)).wait(every: .milliseconds(10)) {
        Self.recordedByteCount(below: first.cacheDirectory) >= scale.minimumCachedByteCount
      }
      if !isFull { violations.append("too little is in the cache after 20 s") }
    }
    pause(for: life)
    violations += reader.errors()
    try first.crash()
    let (readCount, mistakes) = reader.stop()
    self.readCount = readCount
    violations += mistakes
    cachedByteCount = Self.recordedByteCount(below: first.cacheDirectory)
    let arrivedByteCount = try origin.takeRequests().distinctBodyByteCount

    let second = try sandbox.mount(urls: urls, cache: cache)
    for index in names.indices {
      let digest = Digest.ofContent(seed: seeds[index], byteCount: lengths[index])
      if try second.sha256(names[index]) != digest {
        violations.append("WRONG BYTES in \(names[index])")
      }
    }
    let ending = try second.unmount()
    if ending != .exited(0) { violations.append("httpfs ended with \(ending)") }
    // The server logs a request when its response has ended.
    _ = try Deadline(after: .seconds(5)).wait {
      repeatedByteCount =
        try arrivedByteCount + origin.requests().distinctBodyByteCount - lengths.reduce(0, +)
      return repeatedByteCount >= 0
    }
    if repeatedByteCount < 0 { violations.append("\(repeatedByteCount) bytes travelled twice") }
    violations = violations.map { "seed \(seed), killed after \(life): \($0)" }
  }

  private static func recordedByteCount(below cache: String) -> Int64 {
    FileStatus.files(named: "record", below: cache).reduce(0) { sum, path in
      // An incomplete record claims nothing.
      sum + ((try? CacheRecord(path: path))?.byteCount ?? 0)
    }
  }
}
