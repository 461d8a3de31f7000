import ExtentRecord
import Glibc

extension SystemCalls {
  /// The inode number of an open file (`fstat(2)`).
  static func inodeNumber(_ descriptor: CInt) throws(ErrorNumber) -> UInt64 {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw ErrorNumber(rawValue: errno) }
    return UInt64(status.st_ino)
  }
}
