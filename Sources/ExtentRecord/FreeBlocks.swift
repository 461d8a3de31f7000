internal import Glibc
package import HTTPTransferCore

/// The blocks of a data file that hold nothing of value.
package enum FreeBlocks {
  /// The size of a page, and the largest block of most file systems, in bytes.
  private static let byteCount: Int64 = 4096

  /// Gives back the blocks of `data` that hold nothing of `present`, so that what is written there later
  /// gets new ones.
  ///
  /// A failed sync may leave a block that ext4 shows as written though it is not: see
  /// docs/CACHE-FORMAT.md. Where the file system cannot give blocks back, their pages are forgotten.
  ///
  /// - Throws: what the file system says.
  package static func giveBack(
    of data: Descriptor, except present: ExtentSet
  ) throws(ErrorNumber) {
    let end = roundedUp(try SystemCalls.status(data.rawValue).byteCount)
    for hole in present.holes(in: 0..<end) {
      guard try giveBack(of: data, hole) else { return }
    }
  }

  /// As ``giveBack(of:except:)``, of the whole blocks of `range`, which holds nothing of value.
  ///
  /// - Returns: whether the file system can give blocks back.
  package static func giveBack(
    of data: Descriptor, _ range: ByteRange
  ) throws(ErrorNumber) -> Bool {
    let start = roundedUp(range.lowerBound)
    let end = range.upperBound / byteCount * byteCount
    guard start < end else { return true }
    do throws(ErrorNumber) {
      // Most have no blocks, and to ask costs a tenth.
      guard let first = try SystemCalls.firstData(data.rawValue, from: start), first < end else {
        return true
      }
      try SystemCalls.punchHole(data.rawValue, start, byteCount: end - start)
      return true
    } catch {
      guard [EOPNOTSUPP, ENOSYS].contains(error.rawValue) else { throw error }
      SystemCalls.forgetPages(data.rawValue)
      return false
    }
  }

  /// Not beyond what a file may be long.
  private static func roundedUp(_ offset: Int64) -> Int64 {
    let last = Int64.max / byteCount * byteCount
    return offset > last ? last : (offset + byteCount - 1) / byteCount * byteCount
  }
}
