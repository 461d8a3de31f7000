internal import CLinux
internal import Glibc

/// Calls about the storage below files: blocks, space, times and cached pages.
package enum FileSystemCalls {
  /// Frees the blocks of a range (`fallocate(2)` with `FALLOC_FL_PUNCH_HOLE`).
  package static func punchHole(
    _ descriptor: CInt, _ offset: Int64, byteCount: Int64
  ) throws(ErrorNumber) {
    _ = try checked { httpfs_punch_hole(descriptor, offset, byteCount) }
  }

  /// The offset of the first data at or after `offset` (`lseek(2)` with `SEEK_DATA`); nil if there
  /// is none.
  ///
  /// Pages in memory count as data, even those of a block that was never written.
  package static func firstData(
    _ descriptor: CInt, from offset: Int64
  ) throws(ErrorNumber) -> Int64? {
    do throws(ErrorNumber) {
      return try checked { httpfs_first_data(descriptor, offset) }
    } catch {
      if error.rawValue == ENXIO { return nil }
      throw error
    }
  }

  /// Asks the kernel to drop the clean pages of a file (`posix_fadvise(2)` with
  /// `POSIX_FADV_DONTNEED`).
  ///
  /// It names the whole file, because the kernel keeps a large folio if only a part of it is named.
  package static func forgetPages(_ descriptor: CInt) {
    _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
  }

  /// Whether bytes of a range are in pages that ``forgetPages(_:)`` has not dropped (`mincore(2)`),
  /// for example because a process maps them.
  ///
  /// False for a file that is in memory only, and true if the kernel does not say.
  package static func keepsPages(_ descriptor: CInt, _ offset: Int64, byteCount: Int64) -> Bool {
    if httpfs_is_in_memory(descriptor) != 0 { return false }
    let pageByteCount = Int64(getpagesize())
    var start = offset / pageByteCount * pageByteCount
    let end = offset + byteCount
    var pages = [UInt8](repeating: 0, count: 4096)
    while start < end {
      let length = Int(min(end - start, Int64(pages.count) * pageByteCount))
      let mapping = mmap(nil, length, PROT_READ, MAP_PRIVATE, descriptor, off_t(start))
      guard let mapping, mapping != MAP_FAILED else { return true }
      defer { munmap(mapping, length) }
      guard mincore(mapping, length, &pages) == 0 else { return true }
      let count = (length + Int(pageByteCount) - 1) / Int(pageByteCount)
      if pages[..<count].contains(where: { $0 & 1 != 0 }) { return true }
      start += Int64(length)
    }
    return false
  }

  /// The block size of the file system of a descriptor, in bytes (`fstatvfs(3)`).
  package static func blockByteCount(_ descriptor: CInt) throws(ErrorNumber) -> Int64 {
    var status = statvfs()
    _ = try checked { Glibc.fstatvfs(descriptor, &status) }
    return Int64(clamping: status.f_bsize)
  }

  /// The size of a descriptor's file system in bytes, and how many of them this user can use
  /// (`fstatvfs(3)`).
  package static func space(_ descriptor: CInt) -> (total: Int64, available: Int64)? {
    var status = statvfs()
    guard fstatvfs(descriptor, &status) == 0 else { return nil }
    let unit = UInt64(status.f_frsize)
    let total = UInt64(status.f_blocks).multipliedReportingOverflow(by: unit)
    let available = UInt64(status.f_bavail).multipliedReportingOverflow(by: unit)
    guard !total.overflow, !available.overflow else { return nil }
    return (Int64(clamping: total.partialValue), Int64(clamping: available.partialValue))
  }

  /// Whether the file system of a descriptor maintains the times that a ``FileFingerprint`` needs
  /// (`fstatfs(2)`).
  package static func keepsChangeTimes(_ descriptor: CInt) -> Bool {
    httpfs_keeps_change_times(descriptor) != 0
  }
}
