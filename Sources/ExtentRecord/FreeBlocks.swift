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
    let block = try blockByteCount(of: data)
    let end = roundedUp(try SystemCalls.status(data.rawValue).byteCount, to: block)
    for hole in present.holes(in: 0..<end) {
      guard try giveBack(of: data, hole, blockByteCount: block) else { return }
    }
  }

  /// As ``giveBack(of:except:)``, of the whole blocks of `range`, which holds nothing of value.
  ///
  /// - Returns: whether the file system can give blocks back.
  package static func giveBack(
    of data: Descriptor, _ range: ByteRange
  ) throws(ErrorNumber) -> Bool {
    try giveBack(of: data, range, blockByteCount: try blockByteCount(of: data))
  }

  private static func giveBack(
    of data: Descriptor, _ range: ByteRange, blockByteCount block: Int64
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

  /// The size of a block of the file system, but at most a page, the unit in which the kernel drops what
  /// it could not write.
  ///
  /// With smaller blocks, as ext4 may have them, what a sync has lost may begin within a page.
  private static func blockByteCount(of data: Descriptor) throws(ErrorNumber) -> Int64 {
    min(max(try SystemCalls.blockByteCount(data.rawValue), 512), 4096)
  }

  /// Not beyond what a file may be long.
  private static func roundedUp(_ offset: Int64, to block: Int64) -> Int64 {
    let last = Int64.max / block * block
    return offset > last ? last : (offset + block - 1) / block * block
  }
}
