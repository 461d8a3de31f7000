internal import Glibc
package import HTTPTransferCore

/// The blocks of a data file that hold nothing of value.
package enum FreeBlocks {
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
    let status = try SystemCalls.status(data.rawValue)
    let block = blockByteCount(status)
    for hole in present.holes(in: 0..<roundedUp(status.byteCount, to: block)) {
      guard try giveBack(of: data, hole, block) else { return }
    }
  }

  /// As ``giveBack(of:except:)``, of the whole blocks of `range`, which holds nothing of value.
  ///
  /// - Returns: whether the file system can give blocks back.
  package static func giveBack(
    of data: Descriptor, _ range: ByteRange
  ) throws(ErrorNumber) -> Bool {
    try giveBack(of: data, range, blockByteCount(try SystemCalls.status(data.rawValue)))
  }

  private static func giveBack(
    of data: Descriptor, _ range: ByteRange, _ block: Int64
  ) throws(ErrorNumber) -> Bool {
    let start = roundedUp(range.lowerBound, to: block)
    let end = range.upperBound / block * block
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

  /// The size of a block of the file: with ext4's of 1024 bytes, the lost ones may begin within a page.
  ///
  /// Of a file system that prefers more, pages.
  private static func blockByteCount(_ status: SystemCalls.Status) -> Int64 {
    min(max(status.preferredByteCount, 512), 4096)
  }

  /// Not beyond what a file may be long.
  private static func roundedUp(_ offset: Int64, to block: Int64) -> Int64 {
    let last = Int64.max / block * block
    return offset > last ? last : (offset + block - 1) / block * block
  }
}
