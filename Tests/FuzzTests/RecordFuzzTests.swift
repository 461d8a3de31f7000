import ExtentRecord
import Foundation
import HTTPTransferCore
import RangeCache
import SeededRandom
import Testing

/// No byte is served that was not stored, unless the record claims it with the right checksum and a
/// commit.
///
/// `RecordDamageTests` covers damage of single bits and bytes. Here, whole sectors and records are
/// lost, repeated, exchanged with those of other files, and forged.
@Suite(.timeLimit(.minutes(10))) struct RecordFuzzTests {
  let root: TemporaryDirectory
  let directory: CacheDirectory
  let key = CacheKey("http://example.org/a.bin")

  init() throws {
    root = try TemporaryDirectory()
    directory = try CacheDirectory(path: root.path + "/cache")
  }

  /// The bytes of a version, in which a misplaced byte, a byte of another version and a hole are
  /// visible.
  private static func content(_ range: ByteRange, version: UInt64 = 1) -> [UInt8] {
    range.map { offset in
      var value = (UInt64(bitPattern: offset) &+ version << 40) &* 0x9E37_79B9_7F4A_7C15
      value ^= value >> 29
      return UInt8(truncatingIfNeeded: value % 255) + 1
    }
  }

  /// A record file, its data file, and their content.
  private struct Entry {
    let record: [UInt8]
    let data: [UInt8]
    let recordPath: String
    let dataPath: String
    var stored = ExtentSet()
  }

  /// Makes an entry of version `version` with random extents and, if `commits` is set, commits.
  private func makeEntry(
    version: UInt64 = 1, commits: Bool, using generator: inout SeededGenerator
  ) throws -> Entry {
    var stored = ExtentSet()
    do {
      let entry = try directory.createEntry(
        key, version: ContentVersion(entityTag: EntityTag(opaque: "v\(version)")),
        source: "http://example.org/a.bin")
      for _ in 0..<Int.random(in: 4...14, using: &generator) {
        let offset = Int64.random(in: 0..<3500, using: &generator)
        let range = ByteRange(offset: offset, byteCount: .random(in: 1...400, using: &generator))
        try Self.content(range, version: version).withUnsafeBytes { bytes in
          try entry.store(bytes, at: range.lowerBound)
        }
        stored.insert(range)
        if commits, generator.isOnce(in: 4) {
          try entry.appendCommit(try entry.syncData(), fetchedByteCount: 7)
        }
        if generator.isOnce(in: 12) { try entry.recordCompleteLength(5000) }
      }
    }
    let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
    let record = try #require(names.first { $0.hasSuffix("/record") })
    let data = try #require(names.first { $0.contains("/data-") })
    let recordPath = directory.path + "/" + record
    let dataPath = directory.path + "/" + data
    return Entry(
      record: try Self.read(recordPath), data: try Self.read(dataPath), recordPath: recordPath,
      dataPath: dataPath, stored: stored)
  }

  private static func read(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(filePath: path)))
  }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(filePath: path))
  }

  // MARK: Oracle

  /// Opens the entry, checks it, stores more bytes, and opens it again.
  private func judge(
    _ entry: Entry, using generator: inout SeededGenerator
  ) throws -> FuzzCampaign.Verdict {
    var known: ExtentSet
    do {
      guard let opened = try directory.openEntry(key) else { return .refused }
      known = opened.recoveredExtents
      if let rule = Self.rule(brokenBy: opened, within: entry.stored) { return .broken(rule) }
      guard opened.recoveredVersion.entityTag == EntityTag(opaque: "v1") else {
        return .broken("of version \(opened.recoveredVersion)")
      }
      // The entry remains usable: bytes stored and committed now must not be lost, nor bring back
      // omitted ones.
      let room = opened.recoveredVersion.completeLength ?? 5000
      let range: ByteRange = 4000..<max(4000, min(4100, room))
      if !range.isEmpty, generator.isOnce(in: 2) {
        try Self.content(range).withUnsafeBytes { try opened.store($0, at: range.lowerBound) }
        try opened.appendCommit(try opened.syncData(), fetchedByteCount: 9)
        known.insert(range)
      }
    }
    guard let again = try directory.openEntry(key) else { return .broken("lost when opened again") }
    var stored = entry.stored
    stored.insert(4000..<4100)
    if let rule = Self.rule(brokenBy: again, within: stored) { return .broken("again: \(rule)") }
    return again.recoveredExtents == known
      ? .accepted : .broken("\(again.recoveredExtents.extents), not \(known.extents)")
  }

  /// The rule that an entry violates: it may show only stored bytes, unchanged.
  private static func rule(brokenBy entry: CacheEntry, within stored: ExtentSet) -> String? {
    for range in entry.recoveredExtents.extents {
      if !stored.contains(range) { return "\(range) was never stored" }
      var bytes = [UInt8](repeating: 0, count: Int(range.byteCount))
      let count = pread(entry.dataDescriptor, &bytes, bytes.count, off_t(range.lowerBound))
      if count != bytes.count { return "\(range) has \(count) bytes" }
      if bytes != content(range) { return "\(range) holds other bytes" }
    }
    return nil
  }

  // MARK: Campaigns

  @Test("Of 4,000 records with lost, repeated and foreign sectors, none yields a wrong byte")
  func sectors() throws {
    var generator = SeededGenerator(seed: 1)
    // Older records of the same file, which a file system may show instead of lost ones.
    var older: [[UInt8]] = []
    for version in 2..<5 {
      let entry = try makeEntry(version: UInt64(version), commits: true, using: &generator)
      older.append(entry.record)
    }
    let entry = try makeEntry(commits: true, using: &generator)
    let campaign = FuzzCampaign(name: "record sectors", count: 4000)
    campaign.run(minimumAccepted: 0.2, minimumRefused: 0.05) { generator in
      var record = entry.record
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let unit = generator.pick([LogRecord.byteCount, 64, 512])
        let first = Int.random(in: 0...(record.count / unit), using: &generator) * unit
        let end = min(record.count, first + unit * Int.random(in: 1...4, using: &generator))
        guard first < end else { continue }
        let foreign = generator.pick(older + [entry.record, entry.data])
        let from =
          generator.isOnce(in: 2)
          ? first : Int.random(in: 0...(foreign.count / unit), using: &generator) * unit
        let piece = Array(
          foreign[min(from, foreign.count)..<min(foreign.count, from + end - first)])
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: record.replaceSubrange(first..<end, with: repeatElement(0, count: end - first))
        case 1: record.removeSubrange(first..<end)
        case 2: record.insert(contentsOf: Array(record[first..<end]), at: end)
        case 3: record.replaceSubrange(first..<end, with: piece)
        case 4: record += piece
        default: record.replaceSubrange(first..., with: foreign[min(first, foreign.count)...])
        }
      }
      try Self.write(record, to: entry.recordPath)
      try Self.write(entry.data, to: entry.dataPath)
      _ = try directory.recordedEntry(key)
      return try judge(entry, using: &generator)
    }
  }

  @Test("Of 4,000 forged records, none makes bytes be believed that no commit covers")
  func forgedRecords() throws {
    var generator = SeededGenerator(seed: 2)
    let entry = try makeEntry(commits: false, using: &generator)
    let image = try #require(RecordImage(entry.record))
    let campaign = FuzzCampaign(name: "forged records", count: 4000)
    campaign.run(minimumAccepted: 0.3, minimumRefused: 0) { generator in
      var forged = image
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let index = Int.random(in: 0..<forged.records.count, using: &generator)
        switch Int.random(in: 0..<5, using: &generator) {
        case 0:
          forged.records.remove(at: index)
          if forged.records.isEmpty { return .refused }
        case 1: forged.records.insert(generator.pick(image.records), at: index)
        case 2: forged.records.shuffle(using: &generator)
        case 3:
          forged.append(
            .extent(
              offset: max(0, generator.edgeNumber()), byteCount: max(1, generator.edgeNumber()),
              contentHash: generator.next()))
        default:
          let place = Int.random(in: 8..<LogRecord.byteCount, using: &generator)
          if place < forged.records[index].count {
            forged.records[index][place] = UInt8.random(in: 0...255, using: &generator)
          }
        }
      }
      // Every record is valid except for its claim.
      for index in forged.records.indices where !generator.isOnce(in: 20) {
        forged.sign(recordAt: index)
      }
      let claimsCommit = forged.validRecords.contains { record in
        if case .commit(_, let covered, _) = record { covered > 0 } else { false }
      }
      try Self.write(forged.bytes, to: entry.recordPath)
      try Self.write(entry.data, to: entry.dataPath)
      _ = try directory.recordedEntry(key)
      if claimsCommit {
        // A forged commit is accepted; it must not trap.
        _ = try directory.openEntry(key)
        return .refused
      }
      return try judge(entry, using: &generator)
    }
  }

  @Test("A look does not trap on forged extents whose sum is more than a number can hold")
  func forgedSum() throws {
    var generator = SeededGenerator(seed: 7)
    let entry = try makeEntry(commits: false, using: &generator)
    var forged = try #require(RecordImage(entry.record))
    for _ in 0..<3 {
      forged.append(.extent(offset: 0, byteCount: 1 << 62, contentHash: 1))
    }
    try Self.write(forged.bytes, to: entry.recordPath)
    let found = try #require(try directory.recordedEntry(key))
    #expect(found.extents == entry.stored)
  }

  @Test("Of 2,000 headers, those of later versions are left alone and forged ones do not trap")
  func headers() throws {
    var generator = SeededGenerator(seed: 3)
    let entry = try makeEntry(commits: true, using: &generator)
    let image = try #require(RecordImage(entry.record))
    let campaign = FuzzCampaign(name: "record headers", count: 2000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.2) { generator in
      var forged = image
      var isOfLaterVersion = false
      switch Int.random(in: 0..<5, using: &generator) {
      case 0:
        isOfLaterVersion = true
        forged.header[8] = UInt8.random(in: 2...255, using: &generator)
      case 1:
        // A field that a later program of this format might write.
        let count = Int.random(in: 0...40, using: &generator)
        let field =
          [generator.pick([7, 99, 255]), 0, 0, 0, UInt8(count), 0, 0, 0]
          + [UInt8](repeating: 0x78, count: count)
        forged.header.insert(contentsOf: field, at: forged.header.count - 8)
      case 2:
        let place = Int.random(
          in: RecordHeader.prefixByteCount..<forged.header.count, using: &generator)
        forged.header[place] = UInt8.random(in: 0...255, using: &generator)
      case 3:
        let place = Int.random(in: 64..<(forged.header.count - 8), using: &generator)
        forged.header.removeSubrange(place..<(forged.header.count - 8))
      default:
        let field = forged.header[64..<(forged.header.count - 8)]
        forged.header.insert(contentsOf: field, at: forged.header.count - 8)
      }
      forged.signHeader()
      try Self.write(forged.bytes, to: entry.recordPath)
      try Self.write(entry.data, to: entry.dataPath)
      let found: CacheEntry?
      do throws(CacheError) {
        found = try directory.openEntry(key)
      } catch {
        guard error.code == .laterFormat else { throw error }
        return isOfLaterVersion ? try leftAlone(forged, entry) : .broken("\(error)")
      }
      guard let opened = found else { return try leftAlone(forged, entry) }
      if isOfLaterVersion { return .broken("a later version was taken for this one") }
      let rule = Self.rule(brokenBy: opened, within: entry.stored)
      return rule.map { .broken($0) } ?? .accepted
    }
  }

  /// Whether opening a record of an unknown form leaves it unchanged.
  private func leftAlone(
    _ forged: RecordImage, _ entry: Entry
  ) throws -> FuzzCampaign.Verdict {
    let isLeftAlone = try Self.read(entry.recordPath) == forged.bytes
    return isLeftAlone ? .refused : .broken("a record that is not understood was changed")
  }

  @Test("Of 3,000 data files with flipped bits, no flipped byte passes for one that was stored")
  func flippedBits() throws {
    var generator = SeededGenerator(seed: 4)
    let entry = try makeEntry(commits: true, using: &generator)
    let campaign = FuzzCampaign(name: "flipped bits", count: 3000)
    campaign.run(minimumAccepted: 0.5, minimumRefused: 0) { generator in
      var data = entry.data
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let place = Int.random(in: 0..<data.count, using: &generator)
        let byteCount = generator.pick([1, 1, 8, 300])
        for index in place..<min(data.count, place + byteCount) {
          data[index] ^= UInt8.random(in: 1...255, using: &generator)
        }
      }
      try Self.write(entry.record, to: entry.recordPath)
      try Self.write(data, to: entry.dataPath)
      guard let opened = try directory.openEntry(key) else { return .broken("no entry") }
      for range in opened.recoveredExtents.extents {
        // Committed bytes are verified before their first use; the rest has been verified by now.
        var intact = ExtentSet()
        intact.insert(range)
        for believed in opened.believedExtents.extents {
          let part = believed.clamped(to: range)
          guard !part.isEmpty else { continue }
          for damaged in try opened.verify(part).damaged.extents { intact.remove(damaged) }
        }
        for part in intact.extents {
          let bytes = Array(data[Int(part.lowerBound)..<Int(part.upperBound)])
          if bytes != Self.content(part) { return .broken("\(part) is wrong and passes") }
        }
      }
      return .accepted
    }
  }

  @Test("Of 2,000 losses of power, none leaves a byte that was not on the disk")
  func lossesOfPower() throws {
    let campaign = FuzzCampaign(name: "losses of power", count: 2000)
    campaign.run(minimumAccepted: 0.9, minimumRefused: 0) { generator in
      let entry = try makeEntry(commits: true, using: &generator)
      guard let image = RecordImage(entry.record) else { return .broken("no record to begin with") }
      var covered: UInt64 = 0
      for case .commit(_, let sequence, _) in image.validRecords {
        covered = max(covered, sequence)
      }
      // The safe bytes are those of extents that a commit covers. Any sector outside them may be
      // lost.
      var safe = ExtentSet()
      for (index, record) in image.validRecords.enumerated() where UInt64(index) < covered {
        if case .extent(let offset, let count, _) = record {
          safe.insert(offset..<(offset + count))
        }
      }
      var data = entry.data
      let unit = generator.pick([16, 64, 512])
      for start in stride(from: 0, to: data.count, by: unit) where generator.isOnce(in: 3) {
        let sector = Int64(start)..<Int64(min(data.count, start + unit))
        for hole in safe.holes(in: sector) {
          for offset in hole { data[Int(offset)] = 0 }
        }
      }
      if generator.isOnce(in: 3) {
        let end = Int(safe.extents.last?.upperBound ?? 0)
        data = Array(data.prefix(Int.random(in: end...max(end, data.count), using: &generator)))
      }
      try Self.write(data, to: entry.dataPath)
      let verdict = try judge(entry, using: &generator)
      guard case .accepted = verdict else { return verdict }
      // Committed bytes are not lost either.
      guard let opened = try directory.openEntry(key) else { return .broken("lost") }
      let length = opened.recoveredVersion.completeLength ?? .max
      for range in safe.extents where range.upperBound <= length {
        if !opened.recoveredExtents.contains(range) { return .broken("\(range) was lost") }
      }
      return .accepted
    }
  }
}
