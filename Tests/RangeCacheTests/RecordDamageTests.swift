import ExtentRecord
import Foundation
import HTTPTransferCore
import SeededRandom
import Testing

@testable import RangeCache

/// Whatever damage the files of an entry have, the recovered claims are true.
@Suite struct RecordDamageTests {
  let root: TemporaryDirectory
  let directory: CacheDirectory
  let key = CacheKey("http://example.org/a.bin")

  /// The claims of the log under test, in order.
  private enum Step {
    case store(ByteRange)
    case commit(Int64)
    case length(Int64)
  }

  private let steps: [Step] = [
    .store(0..<64), .store(200..<260), .commit(124), .store(64..<90), .length(400),
    .store(300..<400), .commit(250), .store(100..<110),
  ]

  init() throws {
    root = try TemporaryDirectory()
    directory = try CacheDirectory(path: root.path + "/cache")
  }

  private func makeEntry() throws {
    let entry = try directory.createEntry(
      key, version: ContentVersion(entityTag: EntityTag(opaque: "v1")), source: "http://e/a")
    for step in steps {
      switch step {
      case .store(let range): try entry.storePattern(range)
      case .commit(let fetched): try entry.appendCommit(entry.syncData(), fetchedByteCount: fetched)
      case .length(let length): try entry.recordCompleteLength(length)
      }
    }
  }

  /// The combined result of the first `count` claims: the oracle.
  private func expected(count: Int) -> (extents: ExtentSet, length: Int64?) {
    var extents = ExtentSet()
    var length: Int64?
    for step in steps.prefix(count) {
      switch step {
      case .store(let range): extents.insert(range)
      case .length(let value): length = value
      case .commit: break
      }
    }
    return (extents, length)
  }

  private func headerByteCount(_ record: [UInt8]) throws -> Int {
    try #require(record.withUnsafeBytes { RecordHeader.byteCount(ofHeaderStartingWith: $0) })
  }

  /// Checks the recovery of a record that is intact up to `validByteCount`.
  private func expectPrefix(_ validByteCount: Int, headerByteCount: Int) throws {
    guard let entry = try directory.openEntry(key) else {
      #expect(validByteCount < headerByteCount)
      return
    }
    #expect(validByteCount >= headerByteCount)
    let oracle = expected(count: (validByteCount - headerByteCount) / LogRecord.byteCount)
    #expect(entry.recoveredExtents == oracle.extents)
    #expect(entry.recoveredVersion.completeLength == oracle.length)
    #expect(entry.holdsPattern(entry.recoveredExtents))
  }

  @Test("A record cut at any byte yields what is whole, and goes on from there")
  func truncation() throws {
    try makeEntry()
    let path = try root.recordPath()
    let record = try readFile(path)
    let dataPath = try root.dataPath()
    let data = try readFile(dataPath)
    let headerByteCount = try headerByteCount(record)
    for byteCount in 0...record.count {
      try writeFile(path, Array(record.prefix(byteCount)))
      // The previous round has written to the file, and freed the blocks without a claim.
      try writeFile(dataPath, data)
      try expectPrefix(byteCount, headerByteCount: headerByteCount)
      guard byteCount >= headerByteCount else { continue }
      // Newly stored bytes are found beside the remaining ones.
      try directory.openEntry(key)?.storePattern(110..<120)
      var oracle = expected(count: (byteCount - headerByteCount) / LogRecord.byteCount).extents
      oracle.insert(110..<120)
      #expect(try directory.openEntry(key)?.recoveredExtents == oracle)
    }
  }

  @Test("A flipped bit at any byte yields the claims before it only")
  func bitFlips() throws {
    try makeEntry()
    let path = try root.recordPath()
    let record = try readFile(path)
    let headerByteCount = try headerByteCount(record)
    for index in record.indices {
      var damaged = record
      damaged[index] ^= 1 << UInt8(index % 8)
      try writeFile(path, damaged)
      let whole =
        index < headerByteCount
        ? 0 : index - (index - headerByteCount) % LogRecord.byteCount
      try expectPrefix(whole, headerByteCount: headerByteCount)
    }
  }

  @Test("Records behind a damaged one do not come back when it is overwritten")
  func staleTail() throws {
    try makeEntry()
    let path = try root.recordPath()
    let record = try readFile(path)
    // The third last record is damaged, the two after it are intact.
    let place = record.count - 3 * LogRecord.byteCount
    var damaged = record
    damaged[place + 30] ^= 1
    try writeFile(path, damaged)
    try directory.openEntry(key)?.storePattern(0..<1)
    // A power failure may preserve the new record but not the truncation of the file.
    var mixed = try readFile(path)
    mixed.append(contentsOf: record[mixed.count...])
    try writeFile(path, mixed)
    #expect(try directory.openEntry(key)?.recoveredExtents == expected(count: 5).extents)
  }

  @Test("A record counts only under its own sequence number and salt")
  func placeOfRecord() {
    let record = LogRecord.commit(fetchedByteCount: 7, coveredSequence: 2)
    withUnsafeBytes(of: record.encoded(sequence: 5, salt: 9)) { bytes in
      #expect(LogRecord(bytes, sequence: 5, salt: 9) == record)
      #expect(LogRecord(bytes, sequence: 6, salt: 9) == nil)
      #expect(LogRecord(bytes, sequence: 5, salt: 8) == nil)
      #expect(
        LogRecord(UnsafeRawBufferPointer(rebasing: bytes.dropLast()), sequence: 5, salt: 9) == nil)
    }
  }

  @Test("A record of garbage is no entry and can be replaced", arguments: [0, 1, 63, 64, 72, 9000])
  func garbage(byteCount: Int) throws {
    try makeEntry()
    var generator = SeededGenerator(seed: UInt64(byteCount))
    let garbage = (0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
    try writeFile(try root.recordPath(), garbage)
    #expect(try directory.openEntry(key) == nil)
    try makeEntry()
    #expect(try directory.openEntry(key)?.recoveredExtents == expected(count: .max).extents)
    _ = try root.dataPath()
  }

  @Test("Another key's record is no entry")
  func foreignKey() throws {
    try makeEntry()
    let other = CacheKey("http://example.org/b.bin")
    try FileManager.default.createDirectory(
      atPath: directory.path + "/v1/files/" + other.prefixName, withIntermediateDirectories: true)
    try FileManager.default.moveItem(
      atPath: directory.path(of: key), toPath: directory.path(of: other))
    #expect(try directory.openEntry(other) == nil)
    #expect(try directory.openEntry(key) == nil)
  }

  @Test("A record without its data file is no entry")
  func missingData() throws {
    try makeEntry()
    try FileManager.default.removeItem(atPath: try root.dataPath())
    #expect(try directory.openEntry(key) == nil)
  }

  @Test("A link or a FIFO in a file's place is not followed, not waited for")
  func linkInPlace() throws {
    try makeEntry()
    let path = try root.recordPath()
    let copy = root.path + "/elsewhere"
    try FileManager.default.moveItem(atPath: path, toPath: copy)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: copy)
    #expect(try directory.openEntry(key) == nil)
    try FileManager.default.removeItem(atPath: path)
    #expect(mkfifo(path, 0o600) == 0)
    #expect(try directory.openEntry(key) == nil)
  }

  @Test("A shortened data file loses what it no longer holds, also after it has grown again")
  func shortenedData() throws {
    try makeEntry()
    let path = try root.dataPath()
    try writeFile(path, Array(try readFile(path).prefix(250)))
    try directory.openEntry(key)?.storePattern(390..<400)
    let entry = try #require(try directory.openEntry(key))
    #expect(entry.recoveredExtents.extents == [0..<90, 100..<110, 390..<400])
    #expect(entry.holdsPattern(entry.recoveredExtents))
  }

  @Test("Uncommitted bytes that are not on the disk are found missing, and no commit covers them")
  func lostUncommitted() throws {
    var entry: CacheEntry? = try directory.createEntry(
      key, version: ContentVersion(completeLength: 1000), source: "")
    try entry?.storePattern(0..<100)
    try entry?.checkpoint(fetchedByteCount: 100)
    try entry?.storePattern(100..<200)
    try entry?.storePattern(200..<300)
    entry = nil
    // The result of a power loss: the record, the file's size, and zeros instead of bytes.
    let path = try root.dataPath()
    var data = try readFile(path)
    data.replaceSubrange(100..<200, with: repeatElement(0, count: 100))
    try writeFile(path, data)

    entry = try directory.openEntry(key)
    #expect(entry?.recoveredExtents.extents == [0..<100, 200..<300])
    #expect(entry?.uncommittedByteCount == 100)
    try entry?.storePattern(500..<600)
    try entry?.checkpoint(fetchedByteCount: 400)
    entry = nil
    let reopened = try #require(try directory.openEntry(key))
    #expect(reopened.recoveredExtents.extents == [0..<100, 200..<300, 500..<600])
    #expect(reopened.uncommittedByteCount == 0)
    #expect(reopened.recoveredFetchedByteCount == 400)
  }

  @Test("After a failed sync, what was uncommitted is dropped for good")
  func discarded() throws {
    var entry: CacheEntry? = try directory.createEntry(
      key, version: ContentVersion(completeLength: 1000), source: "")
    try entry?.storePattern(0..<100)
    try entry?.checkpoint(fetchedByteCount: 100)
    try entry?.storePattern(100..<200)
    entry = nil
    #expect(
      try directory.openEntry(key, uncommitted: .discard)?.recoveredExtents.extents == [0..<100])
    #expect(try directory.openEntry(key)?.recoveredExtents.extents == [0..<100])
  }

  @Test("Records with extreme numbers and right checksums neither trap nor count")
  func extremeNumbers() throws {
    try makeEntry()
    let path = try root.recordPath()
    let record = try readFile(path)
    let header = try #require(
      record.prefix(try headerByteCount(record)).withUnsafeBytes { RecordHeader($0) })
    let whole = expected(count: .max)
    let numbers: [Int64] = [
      .min, -1, 0, 1, 399, 400, 1 << 60, (1 << 60) + 1, .max - 1, .max,
    ]
    for first in numbers {
      for second in numbers {
        let records: [LogRecord] = [
          .extent(offset: first, byteCount: second, contentHash: 0),
          .commit(fetchedByteCount: first, coveredSequence: UInt64(bitPattern: second)),
          .completeLength(first),
        ]
        for extreme in records {
          var damaged = record
          withUnsafeBytes(
            of: extreme.encoded(sequence: UInt64(steps.count + 1), salt: header.salt)
          ) { damaged.append(contentsOf: $0) }
          try writeFile(path, damaged)
          let entry = try #require(try directory.openEntry(key))
          let isSubset = entry.recoveredExtents.extents.allSatisfy { whole.extents.contains($0) }
          #expect(isSubset, "\(extreme)")
          // The additions of a mount must not overflow.
          #expect(entry.recoveredFetchedByteCount <= 1 << 60, "\(extreme)")
          #expect(entry.recoveredVersion.completeLength ?? 0 <= 1 << 60, "\(extreme)")
        }
      }
    }
  }

  @Test("Ten thousand random mutations never yield a byte that was not stored")
  func randomMutations() throws {
    try makeEntry()
    let recordPath = try root.recordPath()
    let dataPath = try root.dataPath()
    let record = try readFile(recordPath)
    let data = try readFile(dataPath)
    let whole = expected(count: .max)
    var recovered = 0
    for seed in 0..<10_000 {
      var generator = SeededGenerator(seed: UInt64(seed))
      var mutated = record
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        mutate(&mutated, using: &generator)
      }
      try writeFile(recordPath, mutated)
      let isShortened = seed % 4 == 0
      if isShortened {
        try writeFile(dataPath, Array(data.prefix(Int.random(in: 0...400, using: &generator))))
      }
      let extents: ExtentSet
      let isTrue: Bool
      do {
        guard let entry = try directory.openEntry(key) else { continue }
        extents = entry.recoveredExtents
        isTrue = entry.holdsPattern(extents)
      }
      let isSubset = extents.extents.allSatisfy { whole.extents.contains($0) }
      #expect(isTrue && isSubset, "seed \(seed): \(extents.extents)")
      // The recovered record must be stable.
      #expect(try directory.openEntry(key)?.recoveredExtents == extents, "seed \(seed)")
      if isShortened { try writeFile(dataPath, data) }
      recovered += 1
    }
    // The mutations must leave enough to recover, or the test proves nothing.
    #expect(recovered > 2000)
  }

  private func mutate(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
    guard !bytes.isEmpty else { return }
    let start = Int.random(in: 0..<bytes.count, using: &generator)
    let end = min(bytes.count, start + Int.random(in: 1...100, using: &generator))
    switch Int.random(in: 0..<7, using: &generator) {
    case 0: bytes[start] = UInt8.random(in: 0...255, using: &generator)
    case 1: bytes[start] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    case 2: bytes.removeSubrange(start...)
    case 3: bytes.removeSubrange(start..<end)
    case 4: bytes.replaceSubrange(start..<end, with: repeatElement(0, count: end - start))
    case 5: bytes.insert(contentsOf: bytes[start..<end], at: end)
    default:
      // A complete record in another's place: valid by itself, but in the wrong position.
      let count = (bytes.count - 100) / LogRecord.byteCount
      guard count > 1 else { return }
      let size = LogRecord.byteCount
      let from = bytes.count - Int.random(in: 1...count, using: &generator) * size
      let to = bytes.count - Int.random(in: 1...count, using: &generator) * size
      bytes.replaceSubrange(to..<(to + size), with: bytes[from..<(from + size)])
    }
  }
}
