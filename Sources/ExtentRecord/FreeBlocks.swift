internal import Glibc
package import HTTPTransferCore
package import LinuxSystem

/// Frees the blocks of a data file that hold no needed bytes.
package enum FreeBlocks {
  /// Frees the blocks of `data` that hold no bytes of `present`, so that later writes get new
  /// blocks.
  ///
  /// A failed sync may leave a block that ext4 shows as written though it is not: see
  /// docs/CACHE-FORMAT.md. If the file system cannot free blocks, their pages are dropped from
  /// memory.
  ///
  /// - Throws: the error of the file system.
  package static func giveBack(
    of data: Descriptor, except present: ExtentSet
  ) throws(ErrorNumber) {
    let block = try blockByteCount(of: data)
    let end = roundedUp(try SystemCalls.status(data.rawValue).byteCount, to: block)
    for hole in present.holes(in: 0..<end) {
      guard try giveBack(of: data, hole, blockByteCount: block) else { return }
    }
  }

  /// Frees the whole blocks of `range`, which must hold no needed bytes; see
  /// ``giveBack(of:except:)``.
  ///
  /// - Returns: whether the file system can free blocks.
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
      // Most ranges have no blocks, and a query takes a tenth of the time of freeing.
      guard let first = try FileSystemCalls.firstData(data.rawValue, from: start), first < end
      else {
        return true
      }
      try FileSystemCalls.punchHole(data.rawValue, start, byteCount: end - start)
      return true
    } catch {
      guard [EOPNOTSUPP, ENOSYS].contains(error.rawValue) else { throw error }
      FileSystemCalls.forgetPages(data.rawValue)
      return false
    }
  }

  /// The block size of the file system, but at most a page.
  ///
  /// The kernel drops whole pages that it could not write.
  ///
  /// With smaller blocks, which ext4 may have, lost bytes may begin within a page.
  private static func blockByteCount(of data: Descriptor) throws(ErrorNumber) -> Int64 {
    min(max(try FileSystemCalls.blockByteCount(data.rawValue), 512), 4096)
  }

  /// Rounds up, but not beyond the maximum length of a file.
  private static func roundedUp(_ offset: Int64, to block: Int64) -> Int64 {
    let last = Int64.max / block * block
    return offset > last ? last : (offset + block - 1) / block * block
  }
}
