internal import CLinux
internal import Glibc

/// Reads, writes and syncs bytes at given offsets.
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

  /// Opens a file again, for ``readDirectly(_:into:at:)``.
  ///
  /// - Returns: nil unless the file system says that its direct reads bypass the page cache
  ///   (`statx(2)` with `STATX_DIOALIGN`, since Linux 6.1). Some accept `O_DIRECT` and yet read the
  ///   page cache.
  /// - Throws: the error of `open(2)`, for example if no descriptor is free.
  package static func reopenDirectly(_ file: Descriptor) throws(ErrorNumber) -> Descriptor? {
    guard httpfs_has_direct_reads(file.rawValue) != 0 else { return nil }
    return Descriptor(try checked { httpfs_open_directly("/proc/self/fd/\(file.rawValue)") })
  }

  /// Reads the disk, and not the page cache, until `buffer` is full or the file ends.
  ///
  /// - Parameters:
  ///   - descriptor: a file that was opened with `O_DIRECT`.
  ///   - buffer: takes the bytes.
  ///   - offset: the offset of the first one in the file.
  /// - Returns: the number of bytes read.
  /// - Throws: the error of `pread(2)`.
  package static func readDirectly(
    _ descriptor: CInt, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(ErrorNumber) -> Int {
    // The largest block of a disk; offset, size and memory must be multiples of it.
    let alignment = 4096
    let skipped = Int(offset % Int64(alignment))
    let byteCount = (skipped + buffer.count + alignment - 1) / alignment * alignment
    let blocks = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: alignment)
    defer { blocks.deallocate() }
    var done = 0
    while done < byteCount {
      let rest = UnsafeMutableRawBufferPointer(rebasing: blocks[done...])
      let count = try checked {
        Glibc.pread(
          descriptor, rest.baseAddress, rest.count, off_t(offset) - off_t(skipped) + off_t(done))
      }
      done += count
      // The file ends, and the next offset would not be a multiple.
      if count % alignment != 0 || count == 0 { break }
    }
    let found = min(buffer.count, max(0, done - skipped))
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: blocks[skipped..<(skipped + found)]))
    return found
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
}
