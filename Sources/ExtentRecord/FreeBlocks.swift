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
      let start = roundedUp(hole.lowerBound)
      let count = roundedDown(hole.upperBound) - start
      guard count > 0 else { continue }
      do throws(ErrorNumber) {
        try SystemCalls.punchHole(data.rawValue, start, byteCount: count)
      } catch {
        guard [EOPNOTSUPP, ENOSYS].contains(error.rawValue) else { throw error }
        return SystemCalls.forgetPages(data.rawValue, 0, byteCount: end)
      }
    }
  }

  /// Has the kernel forget the pages of `range` that need not be written, so that it is read from the disk.
  package static func forgetPages(of data: Descriptor, _ range: ByteRange) {
    let start = roundedDown(range.lowerBound)
    SystemCalls.forgetPages(
      data.rawValue, start, byteCount: roundedUp(range.upperBound) - start)
  }

  private static func roundedDown(_ offset: Int64) -> Int64 { offset / byteCount * byteCount }

  /// Not beyond what a file may be long.
  private static func roundedUp(_ offset: Int64) -> Int64 {
    offset > .max - byteCount ? roundedDown(offset) : roundedDown(offset + byteCount - 1)
  }
}
