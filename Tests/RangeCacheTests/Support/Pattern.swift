import ExtentRecord
import Foundation
import HTTPTransferCore
import RangeCache

/// The bytes of a remote file as a function of the offset: a misplaced byte is visible.
enum Pattern {
  static func byte(at offset: Int64) -> UInt8 {
    var value = UInt64(bitPattern: offset) &* 0x9E37_79B9_7F4A_7C15
    value ^= value >> 29
    // Never 0: a hole must not look like stored bytes.
    return UInt8(truncatingIfNeeded: value % 255) + 1
  }

  static func bytes(_ range: ByteRange) -> [UInt8] {
    range.map { byte(at: $0) }
  }
}

extension CacheEntry {
  /// Stores the pattern's bytes of `range`.
  func storePattern(_ range: ByteRange) throws {
    try Pattern.bytes(range).withUnsafeBytes { try store($0, at: range.lowerBound) }
  }

  /// Executes all three steps of a checkpoint.
  func checkpoint(fetchedByteCount: Int64) throws {
    try appendCommit(try syncData(), fetchedByteCount: fetchedByteCount)
    try syncRecord()
  }

  /// Whether the data file holds the pattern's bytes everywhere in `extents`.
  func holdsPattern(_ extents: ExtentSet) -> Bool {
    extents.extents.allSatisfy { range in
      var bytes = [UInt8](repeating: 0, count: Int(range.byteCount))
      let count = pread(dataDescriptor, &bytes, bytes.count, off_t(range.lowerBound))
      return count == bytes.count && bytes == Pattern.bytes(range)
    }
  }
}
