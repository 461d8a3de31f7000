import CXXHash
import Foundation

/// The claims of a record file, read by its documented format (docs/CACHE-FORMAT.md).
///
/// The reader uses none of the product's code. It does not verify checksums, which is the product's
/// task. Reading ends at the first record that is out of sequence.
struct CacheRecord {
  struct Extent: Equatable {
    let offset: Int64
    let byteCount: Int64
    /// The number of the record that claims the extent.
    let sequence: UInt64
  }

  /// The offset at which the log begins, in bytes from the start of the file.
  private(set) var headerByteCount = 0
  private(set) var extents: [Extent] = []
  /// The last sequence number that each COMMIT covers, in the order of the COMMITs.
  private(set) var commits: [UInt64] = []
  /// Whether the last record is a COMMIT with a stamp.
  private(set) var isStamped = false

  private static let recordByteCount = 48

  /// Reads a record file.
  ///
  /// - Throws: `HarnessError` if the file is too short for its header.
  init(path: String) throws {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw HarnessError("no record at \(path)")
    }
    let bytes = [UInt8](data)
    guard bytes.count >= 72 else { throw HarnessError("\(path) is too short for a record") }
    headerByteCount = Int(Self.word(bytes, at: 8) >> 32)
    var position = headerByteCount
    var sequence: UInt64 = 1
    while position + Self.recordByteCount <= bytes.count,
      Self.word(bytes, at: position + 8) == sequence
    {
      let first = Self.word(bytes, at: position + 24)
      let second = Self.word(bytes, at: position + 32)
      isStamped = false
      switch Self.word(bytes, at: position + 16) {
      case 1:
        extents.append(
          Extent(
            offset: Int64(bitPattern: first), byteCount: Int64(bitPattern: second),
            sequence: sequence))
      case 2:
        commits.append(second)
        isStamped = Self.word(bytes, at: position + 40) != 0
      default: break
      }
      position += Self.recordByteCount
      sequence += 1
    }
  }

  /// The number of bytes that the extents claim, each counted once.
  var byteCount: Int64 { Self.unionByteCount(extents) }

  /// The number of claimed bytes that a COMMIT covers.
  var committedByteCount: Int64 {
    let covered = commits.max() ?? 0
    return Self.unionByteCount(extents.filter { $0.sequence <= covered })
  }

  /// The number of bytes that this record claims and that no COMMIT of its later state covers.
  ///
  /// The later state is nil if the record no longer exists.
  func byteCount(notCommittedIn later: CacheRecord?) -> Int64 {
    let covered = later.flatMap { $0.commits.max() } ?? 0
    let safe = later?.extents.filter { $0.sequence <= covered } ?? []
    return Self.unionByteCount(extents + safe) - Self.unionByteCount(safe)
  }

  /// Gives a record another format version, complete and signed as that version requires.
  static func setFormatVersion(_ version: UInt32, ofRecordAt path: String) throws {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw HarnessError("no record at \(path)")
    }
    var bytes = [UInt8](data)
    let end = try CacheRecord(path: path).headerByteCount - 8
    guard end >= 64, bytes.count >= end + 8 else { throw HarnessError("no header in \(path)") }
    for index in 0..<4 { bytes[8 + index] = UInt8(truncatingIfNeeded: version >> (8 * index)) }
    let checksum = httpfs_xxh3_with_seed(bytes, end, word(bytes, at: 16))
    for index in 0..<8 { bytes[end + index] = UInt8(truncatingIfNeeded: checksum >> (8 * index)) }
    // Write in place: the file must keep its inode.
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    defer { try? handle.close() }
    try handle.write(contentsOf: bytes)
  }

  private static func unionByteCount(_ extents: [Extent]) -> Int64 {
    var sum: Int64 = 0
    var end: Int64 = 0
    for extent in extents.sorted(by: { $0.offset < $1.offset }) {
      let start = max(end, extent.offset)
      end = max(end, extent.offset + extent.byteCount)
      sum += max(0, end - start)
    }
    return sum
  }

  /// A little-endian 64-bit word.
  private static func word(_ bytes: [UInt8], at offset: Int) -> UInt64 {
    bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}
