internal import CLinux
internal import Glibc

/// Reads, writes and syncs bytes at given offsets, and frees blocks.
extension SystemCalls {
  /// `pread(2)` until `buffer` is full or the file ends; returns the number of bytes read.
  package static func read(
    _ descriptor: CInt, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(ErrorNumber) -> Int {
    var done = 0
    while done < buffer.count {
      let count = try checked {
        Glibc.pread(
          descriptor, buffer.baseAddress?.advanced(by: done), buffer.count - done,
          off_t(offset) + off_t(done))
      }
      if count == 0 { break }
      done += count
    }
    return done
  }

  /// `pread(2)` until `bytes` is full or the file ends; returns the number of bytes read.
  package static func read(
    _ descriptor: CInt, into bytes: inout [UInt8], at offset: Int64
  ) throws(ErrorNumber) -> Int {
    try bytes.withUnsafeMutableBytes { buffer in
      Result { () throws(ErrorNumber) in try read(descriptor, into: buffer, at: offset) }
    }.get()
  }

  /// `pwrite(2)` until every byte is written.
  package static func write(
    _ descriptor: CInt, _ bytes: [UInt8], at offset: Int64
  ) throws(ErrorNumber) {
    try bytes.withUnsafeBytes { buffer in
      Result { () throws(ErrorNumber) in try write(descriptor, buffer, at: offset) }
    }.get()
  }

  /// `pwrite(2)` until every byte is written.
  @inline(__always)
  package static func write(
    _ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, at offset: Int64
  ) throws(ErrorNumber) {
    var done = 0
    while done < bytes.count {
      let count = try checked {
        Glibc.pwrite(
          descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done,
          off_t(offset) + off_t(done))
      }
      // A regular file takes at least one byte or fails. This keeps a broken one from causing a
      // busy loop.
      if count == 0 { throw ErrorNumber(rawValue: EIO) }
      done += count
    }
  }

  /// `ftruncate(2)`.
  package static func truncate(_ descriptor: CInt, to byteCount: Int64) throws(ErrorNumber) {
    _ = try checked { Glibc.ftruncate(descriptor, off_t(byteCount)) }
  }

  /// `fdatasync(2)`.
  ///
  /// Repeat an interrupted call, but never a failed one: the kernel may have dropped the pages that
  /// it could not write.
  package static func syncData(_ descriptor: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.fdatasync(descriptor) }
  }

  /// Throws if the kernel failed to write pages of the file by itself, which it may then drop.
  ///
  /// Each failure is thrown once, here or by the next ``syncData(_:)``.
  ///
  /// Never waits for the disk. Throws nothing if the kernel cannot tell.
  package static func checkWriteback(_ descriptor: CInt) throws(ErrorNumber) {
    do throws(ErrorNumber) {
      _ = try checked { httpfs_check_writeback(descriptor) }
    } catch {
      guard [EIO, ENOSPC, EDQUOT].contains(error.rawValue) else { return }
      throw error
    }
  }

  /// `fsync(2)`.
  package static func sync(_ descriptor: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.fsync(descriptor) }
  }

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
}
