import Foundation
import Glibc
import SeededRandom
import Testing

/// One row of the fault table with one seed: an origin with one file, a mount of it, and a reader.
///
/// In addition to the demands of the row, this checks four requirements of every outcome: no wrong
/// byte, no call past its deadline, a living daemon, and no loss of cached bytes. Every read checks
/// the first two, `end` checks the others.
final class FaultRow {
  let number: Int
  let seed: UInt64
  /// The random numbers of the seed: for lengths, places, patterns.
  var random: SeededGenerator
  let sandbox: Sandbox
  let origin: OriginServer
  /// The length of the file in bytes.
  let length: Int64
  /// The seed of the file's bytes.
  let contentSeed: UInt64
  /// The deadline of a read in seconds.
  let readTimeout: Double
  /// The file's name on the mount.
  let name: String
  private(set) var mount: Mount

  private let query: String
  private let mountOptions: [String]
  private var reader: VerifyingReader
  private var references: [String: String] = [:]
  /// The ranges of the newest version that were read correctly, and must stay readable.
  private var confirmed: (version: UInt64, ranges: [Range<Int64>]) = (0, [])
  private var readCount = 0
  private var wrongCount = 0
  private var lateCount = 0

  /// The time that a call may take beyond the deadline of a read.
  static let grace = 5.0

  /// Starts the origin and mounts its file, without any access to it.
  ///
  /// The seed picks the file's length in bytes from `lengths`. `query` holds parameters of the
  /// resource as docs/ORIGIN.md names them, and `options` further options of `httpfs mount`.
  /// `readTimeout` is the deadline of a read in seconds.
  init(
    _ number: Int, seed: UInt64, lengths: ClosedRange<Int64> = (2 << 20)...(5 << 20),
    query: String = "", name: String = "row.bin", readTimeout: Double = 6, options: [String] = []
  ) throws {
    self.number = number
    self.seed = seed
    self.query = query
    self.name = name
    self.readTimeout = readTimeout
    random = SeededGenerator(seed: seed &* 1000 &+ UInt64(number))
    length = Int64.random(in: lengths, using: &random)
    contentSeed = UInt64.random(in: 1...UInt64(Int64.max), using: &random)
    sandbox = try Sandbox()
    origin = try OriginServer()
    mountOptions = ["--read-timeout", String(readTimeout)] + options
    mount = try sandbox.mount(
      urls: [origin.url(name, length: length, seed: contentSeed, query: query)],
      options: mountOptions)
    reader = try VerifyingReader()
  }

  // MARK: The origin

  /// From now on, sets parameters of all resources.
  func control(_ parameters: [String: String]) throws {
    try origin.control("*", parameters)
  }

  /// Makes the origin misbehave from now on, or in `times` responses of each resource.
  func inflict(_ fault: OriginFault, times: Int? = nil, on pattern: String = "*") throws {
    try origin.post(fault.message(pattern: pattern, times: times))
  }

  /// Removes the effects of `control` and `inflict`.
  func clearFaults() throws { try origin.clearControl() }

  /// The requests for the mounted file that have ended.
  func requests() throws -> [LoggedRequest] {
    try origin.requests().filter { $0.path.hasSuffix("/" + name) }
  }

  // MARK: Locations

  /// Ranges at random places of the file, which may overlap.
  func randomRanges(
    _ count: Int, in part: Range<Int64>? = nil, byteCounts: ClosedRange<Int64> = 1...65_536
  ) -> [Range<Int64>] {
    let part = part ?? 0..<length
    return (0..<count).map { _ in
      let start = Int64.random(in: part, using: &random)
      let count = Int64.random(in: byteCounts, using: &random)
      return start..<min(start + count, part.upperBound)
    }
  }

  /// Small ranges in the file's first quarter, which a test reads before the fault.
  func earlyPlaces(_ count: Int) -> [Range<Int64>] {
    randomRanges(count, in: 0..<length / 4, byteCounts: 1...4096)
  }

  /// A range in the file's last quarter, beyond the read-ahead of `earlyPlaces`.
  func latePlace() -> Range<Int64> {
    randomRanges(1, in: length * 3 / 4..<length - 4096, byteCounts: 1...65_536)[0]
  }

  /// Equal parts of the file in order; the server must answer a read in each of them.
  func parts(_ count: Int) -> [Range<Int64>] {
    (0..<Int64(count)).map { length * $0 / Int64(count)..<length * ($0 + 1) / Int64(count) }
  }

  /// The whole file, in pieces of at most 128 KiB and in an order that the seed determines.
  func piecesOfWhole() -> [Range<Int64>] {
    let byteCount = Int64.random(in: 30_000...131_072, using: &random)
    let pieces = stride(from: 0, to: length, by: Int64.Stride(byteCount)).map {
      $0..<min($0 + byteCount, length)
    }
    return switch Int.random(in: 0..<3, using: &random) {
    case 0: pieces
    case 1: pieces.reversed()
    default: pieces.shuffled(using: &random)
    }
  }

  // MARK: Reading

  /// Opens the file, with any result.
  func tryOpen(sourceLocation: SourceLocation = #_sourceLocation) throws
    -> VerifyingReader.Opening
  {
    let opening = try reader.open(mount.path(name), within: .seconds(readTimeout + 20))
    let duration =
      switch opening {
      case .opened(_, let duration), .failed(_, let duration): duration
      }
    recordDuration(duration, "open", sourceLocation)
    return opening
  }

  /// Opens the file, which must succeed.
  func open(sourceLocation: SourceLocation = #_sourceLocation) throws -> VerifyingReader.Handle {
    switch try tryOpen(sourceLocation: sourceLocation) {
    case .opened(let handle, _): return handle
    case .failed(let error, _):
      throw HarnessError("open gives \(error): \((try? status().lastError) ?? "no reason")")
    }
  }

  /// Opens the file, which must fail with one of these symbols of `errno`.
  func expectOpen(
    failsWith errors: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    switch try tryOpen(sourceLocation: sourceLocation) {
    case .opened(let handle, _):
      try reader.close(handle)
      Issue.record("open succeeds", sourceLocation: sourceLocation)
    case .failed(let error, _):
      #expect(errors.contains(error), sourceLocation: sourceLocation)
    }
  }

  func close(_ handle: VerifyingReader.Handle) throws { try reader.close(handle) }

  /// The length that the handle reports.
  func length(of handle: VerifyingReader.Handle) throws -> Int64? {
    try reader.length(handle, within: .seconds(readTimeout + 20))
  }

  /// Reads `ranges`.
  ///
  /// A wrong byte or a late answer is recorded as an issue; the caller judges errors.
  @discardableResult
  func read(
    _ handle: VerifyingReader.Handle, _ ranges: [Range<Int64>], version: UInt64 = 1,
    length: Int64? = nil, threads: Int = 1, call: VerifyingReader.Call = .pread,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> [VerifyingReader.Reading] {
    let readings = try reader.read(
      handle, ranges, reference: try reference(version: version, length: length ?? self.length),
      threads: threads, call: call, within: .seconds(45))
    for reading in readings {
      readCount += 1
      if let place = reading.wrongOffset {
        wrongCount += 1
        Issue.record(
          "wrong byte at \(place) in a read of \(reading.range)", sourceLocation: sourceLocation)
      }
      recordDuration(reading.duration, "read of \(reading.range)", sourceLocation)
      if reading.deliveredByteCount > 0 {
        if version > confirmed.version { confirmed = (version, []) }
        let start = reading.range.lowerBound
        // The bytes that an old handle still reads are useless to a later mount.
        if version == confirmed.version {
          confirmed.ranges.append(start..<start + reading.deliveredByteCount)
        }
      }
    }
    return readings
  }

  /// Reads `ranges`, each of which must be complete.
  func expectRight(
    _ handle: VerifyingReader.Handle, _ ranges: [Range<Int64>], version: UInt64 = 1,
    length: Int64? = nil, threads: Int = 1, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let readings = try read(
      handle, ranges, version: version, length: length, threads: threads,
      sourceLocation: sourceLocation)
    let failed = readings.filter { !$0.isWhole }
    #expect(
      failed.isEmpty,
      "\(failed.count) of \(ranges.count) reads fail, first \(failed[0]); \(lastError)",
      sourceLocation: sourceLocation)
  }

  /// Reads the whole file and then 500 pieces of it, in a pattern that the seed determines.
  func expectWhole(
    _ handle: VerifyingReader.Handle, version: UInt64 = 1,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let threads = [1, 1, 4].randomElement(using: &random) ?? 1
    try expectRight(
      handle, piecesOfWhole() + randomRanges(500), version: version, threads: threads,
      sourceLocation: sourceLocation)
  }

  /// Reads `range`, which must fail with one of these symbols of `errno`.
  func expectRead(
    _ handle: VerifyingReader.Handle, _ range: Range<Int64>, failsWith errors: [String],
    version: UInt64 = 1, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let reading = try read(handle, [range], version: version, sourceLocation: sourceLocation)[0]
    #expect(
      reading.error.map(errors.contains) == true, "\(reading); \(lastError)",
      sourceLocation: sourceLocation)
  }

  /// Reads `range` until it is complete: a failure is cached for a moment.
  func expectRecovery(
    _ handle: VerifyingReader.Handle, _ range: Range<Int64>, version: UInt64 = 1,
    within limit: Duration = .seconds(5), sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let isRight = try Deadline(after: limit).wait(every: .milliseconds(200)) {
      try read(handle, [range], version: version, sourceLocation: sourceLocation)[0].isWhole
    }
    #expect(isRight, "\(range) does not come back; \(lastError)", sourceLocation: sourceLocation)
  }

  /// Reads `range` through a mapping in its own process, which SIGBUS must end by the deadline.
  func expectBusError(
    _ range: Range<Int64>, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let victim = try VerifyingReader()
    let limit = Duration.seconds(readTimeout + Self.grace)
    guard case .opened(let handle, _) = try victim.open(mount.path(name), within: limit) else {
      throw HarnessError("cannot open \(name)")
    }
    let path = try reference(version: 1, length: length)
    #expect(throws: HarnessError.self, sourceLocation: sourceLocation) {
      try victim.read(handle, [range], reference: path, call: .mmap, within: limit)
    }
    #expect(victim.ending == .signalled(SIGBUS), sourceLocation: sourceLocation)
  }

  /// Waits until no read gets a cached failure any more.
  func letFailuresPass() { pause(for: .milliseconds(1200)) }

  /// The file's entry in `.status.json`.
  func status() throws -> MountStatusFile.File { try mount.status(of: name) }

  private var lastError: String { "\((try? status().lastError) ?? "no error in .status")" }

  private func recordDuration(_ duration: Duration, _ what: String, _ location: SourceLocation) {
    guard duration > .seconds(readTimeout + Self.grace) else { return }
    lateCount += 1
    Issue.record(
      "\(what) took \(duration), with a deadline of \(readTimeout) s", sourceLocation: location)
  }

  /// A local file with the bytes of a version.
  func reference(version: UInt64, length: Int64) throws -> String {
    let key = "version\(version)-\(length)"
    if let path = references[key] { return path }
    let path = sandbox.path(key)
    try TestContent.write(to: path, seed: contentSeed, version: version, byteCount: length)
    references[key] = path
    return path
  }

  // MARK: Downloads

  /// Starts `httpfs get` of the same bytes as a separate resource, so the faults are counted
  /// separately.
  func startGet(
    _ options: [String] = [], name: String = "get.bin", query: String? = nil
  ) throws -> FaultDownload {
    let url = origin.url(name, length: length, seed: contentSeed, query: query ?? self.query)
    return try FaultDownload(self, url: url, name: name, options: options)
  }

  /// Runs `httpfs get` to its end.
  @discardableResult
  func get(
    _ expected: FaultDownload.Outcome, options: [String] = [], name: String = "get.bin",
    query: String? = nil, version: UInt64 = 1, length: Int64? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> FaultDownload {
    let download = try startGet(options, name: name, query: query)
    try download.expect(
      expected, version: version, length: length, sourceLocation: sourceLocation)
    return download
  }

  func recordWrongDownload() { wrongCount += 1 }

  // MARK: Completion

  /// Unmounts, mounts again on the same cache, and starts a new reader.
  func remount() throws {
    reader.end()
    #expect(try mount.unmount() == .exited(0))
    mount = try sandbox.mount(
      urls: [origin.url(name, length: length, seed: contentSeed, query: query)],
      options: mountOptions)
    reader = try VerifyingReader()
  }

  /// Checks the requirements of every outcome, and prints the row's figures for `scripts/torture
  /// faults`.
  ///
  /// The correctly read bytes of the newest version must still be available to a mount without the
  /// origin, unless `keepsCache` is false. `length` is that version's length, if the versions
  /// differ in it.
  func end(
    keepsCache: Bool = true, length: Int64? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let isAlive = mount.process.isRunning
    #expect(isAlive, "httpfs has died", sourceLocation: sourceLocation)
    #expect(throws: Never.self, sourceLocation: sourceLocation) { try mount.status() }
    if keepsCache, !confirmed.ranges.isEmpty {
      try expectCached(length: length, sourceLocation: sourceLocation)
    } else {
      reader.end()
      #expect(try mount.unmount() == .exited(0), sourceLocation: sourceLocation)
    }
    print(
      "FAULT-ROW {\"row\": \(number), \"seed\": \(seed), \"reads\": \(readCount),"
        + " \"wrong\": \(wrongCount), \"late\": \(lateCount), \"deaths\": \(isAlive ? 0 : 1)}")
  }

  /// Expects a mount without the origin to serve all previously read bytes.
  private func expectCached(length: Int64?, sourceLocation: SourceLocation) throws {
    origin.stop()
    try remount()
    let handle = try open(sourceLocation: sourceLocation)
    let ranges = confirmed.ranges.shuffled(using: &random).prefix(200)
    try expectRight(
      handle, Array(ranges), version: confirmed.version, length: length,
      sourceLocation: sourceLocation)
    #expect(mount.process.isRunning, sourceLocation: sourceLocation)
    reader.end()
    #expect(try mount.unmount() == .exited(0), sourceLocation: sourceLocation)
  }
}
