import Foundation
import Glibc
import SeededRandom

/// A mount whose cache disk loses power at a random moment of random reads.
///
/// It also records the state that the next mount finds after the disk's recovery.
struct PowerCutRound {
  /// Bytes that were sent twice.
  private(set) var repeatedByteCount: Int64 = 0
  /// Bytes that were stored early enough before the cut, and were lost nevertheless.
  private(set) var overdueByteCount: Int64 = 0
  /// Bytes that were stored early enough before the cut.
  private(set) var oldByteCount: Int64 = 0
  /// The bytes that may be sent twice: those that were recorded later, and those in flight.
  private(set) var maximumLoss: Int64 = 0
  /// The age at the cut from which bytes must survive.
  private(set) var dueAge = Duration.zero
  private(set) var readCount = 0
  /// The bytes that the records claimed before the cut and after it.
  private(set) var claimedByteCounts: (before: Int64, after: Int64) = (0, 0)
  private(set) var violations: [String] = []

  private static let fileCount = 4
  /// The rate is so low that the download is in progress when the power is cut.
  private static let rate: Int64 = 20 << 20
  /// The 2 s that docs/SEMANTICS.md promises, plus one tick in which a checkpoint is noticed.
  private static let promisedAge = Duration.milliseconds(2000 + 200)
  /// The bytes that a `kill -9` may cost.
  private static let inFlightByteCount: Int64 = 16 << 20

  /// The moment of the power cut.
  enum Moment: Sendable {
    /// At any moment: often before any commit is due.
    case anyMoment
    /// As soon as the first recorded bytes are due.
    ///
    /// A checkpoint that is a second late, or missing, would lose them.
    case whenDue
  }

  /// The maximum number of attempts until bytes were due at the cut.
  ///
  /// A disk that is slower after the cut than before it leaves none due.
  private static let attemptCount = 3

  /// Runs rounds with a cut ``Moment/whenDue``, until bytes were due at the cut of one.
  ///
  /// - Parameters:
  ///   - seed: determines the first round, and the seeds of further ones.
  ///   - disk: the place of the caches.
  ///   - sandbox: the place of the mounts.
  ///   - origin: the server, whose log is cleared.
  /// - Returns: the rounds.
  /// - Throws: `HarnessError` if something cannot be started or mounted.
  static func whenDue(
    seed: UInt64, on disk: LoopDisk, in sandbox: Sandbox, _ origin: OriginServer
  ) throws -> [PowerCutRound] {
    var rounds: [PowerCutRound] = []
    while rounds.count < attemptCount, rounds.allSatisfy({ $0.oldByteCount == 0 }) {
      rounds.append(
        try PowerCutRound(
          seed: seed &+ UInt64(rounds.count) &* 1_000_003, .whenDue, on: disk, in: sandbox, origin))
    }
    return rounds
  }

  /// Runs one round.
  ///
  /// - Parameters:
  ///   - seed: determines lengths, places and the moment.
  ///   - moment: the bounds of the moment.
  ///   - disk: the place of the cache; the round removes its cache.
  ///   - sandbox: the place of the mounts.
  ///   - origin: the server, whose log is cleared.
  /// - Throws: `HarnessError` if something cannot be started or mounted.
  init(
    seed: UInt64, _ moment: Moment, on disk: LoopDisk, in sandbox: Sandbox, _ origin: OriginServer
  ) throws {
    var random = SeededGenerator(seed: seed &* 104_729 &+ 5)
    let lengths = (0..<Self.fileCount).map { _ in
      Int64.random(in: (10 << 20)...(40 << 20), using: &random)
    }
    // Use the slowest of several: the speed of a shared disk varies.
    let syncTimes = try (0..<3).map { _ in try Self.syncTime(on: disk) }
    let syncTime = syncTimes.max() ?? .zero
    let life: Duration =
      switch moment {
      case .anyMoment: .milliseconds(Int.random(in: 100...5500, using: &random))
      case .whenDue:
        Self.dueAge(syncTime) + .milliseconds(Int.random(in: 150...300, using: &random))
      }
    let seeds = lengths.indices.map { seed &* 10 &+ UInt64($0) }
    let names = lengths.indices.map { "p\($0).bin" }
    let urls = lengths.indices.map { index in
      origin.url(names[index], length: lengths[index], seed: seeds[index])
    }
    // The limit is removed afterwards: only bytes are measured.
    try origin.control("*/p?.bin", ["total-rate": "\(Self.rate)"])
    let cache = "\(disk.path)/cache-\(seed)"
    // Remove the files durably: the next cut would undo an unsynced removal, until the disk is
    // full.
    defer { try? disk.empty() }
    try origin.clearLog()

    let first = try Self.mount(urls, cache: cache, in: sandbox)
    let files = lengths.indices.map { index in
      RandomReader.File(
        path: first.path(names[index]), seed: seeds[index], byteCount: lengths[index])
    }
    let reader = try RandomReader(files, seed: seed, in: sandbox)
    let hasBegun = Deadline(after: .seconds(20)).wait {
      Self.claimedByteCount(below: cache) > 1 << 20
    }
    if !hasBegun { violations.append("nothing is in the cache after 20 s") }
    let begun = ContinuousClock.now
    // Keep the records of each moment: the required age is known only afterwards.
    var looks: [(moment: ContinuousClock.Instant, records: [String: CacheRecord])] = []
    repeat {
      let records = Self.records(below: cache)
      looks.append((moment: ContinuousClock.now, records: records))
      let rest = life - (ContinuousClock.now - begun)
      pause(for: min(.milliseconds(50), max(.zero, rest)))
    } while ContinuousClock.now - begun < life
    violations += reader.errors()
    claimedByteCounts.before = Self.claimedByteCount(below: cache)
    let cut = ContinuousClock.now
    try disk.cutPower()
    // In a real power cut the daemon would end at the same moment; here it sees a broken disk until
    // then.
    try first.crash()
    let (readCount, mistakes) = reader.stop()
    self.readCount = readCount
    violations += mistakes
    let before = try origin.requests()
    let measured = (.now - cut).seconds
    if measured > 5 { violations.append("the cut took \(measured) s") }
    try disk.reboot()
    let survivors = Self.records(below: cache)
    claimedByteCounts.after = Self.claimedByteCount(survivors)
    // The disk may have become slower, for example because other tests have begun.
    let laterSyncTime = try Self.syncTime(on: disk)
    let age = Self.dueAge(max(syncTime, laterSyncTime))
    dueAge = age
    let old = looks.last(where: { cut - $0.moment >= age })
    for (path, record) in old?.records ?? [:] {
      oldByteCount += record.byteCount
      overdueByteCount += record.byteCount(notCommittedIn: survivors[path])
    }
    maximumLoss = claimedByteCounts.before - oldByteCount + Self.inFlightByteCount

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

  /// The age at which bytes must be committed on a disk that takes `syncTime` for a checkpoint of
  /// all files.
  ///
  /// This adds twice that time, because the network and the readers continue meanwhile.
  private static func dueAge(_ syncTime: Duration) -> Duration { promisedAge + syncTime * 2 }

  /// The time that the disk takes to sync the bytes of 2 s.
  ///
  /// Like a checkpoint of each file, it syncs the data, then the record.
  private static func syncTime(on disk: LoopDisk) throws -> Duration {
    let data = [UInt8](repeating: 1, count: Int(2 * rate) / fileCount)
    let record = [UInt8](repeating: 2, count: 4096)
    let paths = (0..<fileCount).map { "\(disk.path)/probe-\($0)" }
    defer { for path in paths { unlink(path) } }
    return try elapsed {
      for path in paths { try writeSynced([data, record], to: path) }
    }
  }

  /// Writes pieces one after the other, each synced before the next.
  private static func writeSynced(_ pieces: [[UInt8]], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw HarnessError.systemCall("open \(path)") }
    defer { close(descriptor) }
    for piece in pieces {
      guard write(descriptor, piece, piece.count) == piece.count, fdatasync(descriptor) == 0
      else { throw HarnessError.systemCall("write and sync of \(path)") }
    }
  }

  private static func claimedByteCount(below cache: String) -> Int64 {
    claimedByteCount(records(below: cache))
  }

  private static func claimedByteCount(_ records: [String: CacheRecord]) -> Int64 {
    records.values.reduce(0) { $0 + $1.byteCount }
  }

  /// The records below the cache, by their paths.
  private static func records(below cache: String) -> [String: CacheRecord] {
    let paths = FileStatus.files(named: "record", below: cache)
    return paths.reduce(into: [:]) { $0[$1] = try? CacheRecord(path: $1) }
  }
}
