internal import ExtentRecord
internal import HTTPTransferCore
internal import LinuxSystem

/// Reads the bytes of a version from cache or memory to hash them.
enum BlockReader {
  /// How many bytes are read and recorded at a time: as many as a writer gathers, so that a later
  /// check of a few bytes need not read more.
  private static let blockByteCount = 512 << 10

  /// Reads the bytes of `parts` block by block, beginning at the offset `start` of the remote file.
  ///
  /// - Returns: whether all of them could be read.
  static func forEach(
    of parts: [PresentBytes.Piece], from start: Int64,
    _ body: (UnsafeRawBufferPointer, _ offset: Int64) -> Void
  ) -> Bool {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: blockByteCount, alignment: 4096)
    defer { buffer.deallocate() }
    var offset = start
    for part in parts {
      let end = offset + Int64(part.byteCount)
      while offset < end {
        let block = UnsafeMutableRawBufferPointer(
          rebasing: buffer[..<Int(min(Int64(buffer.count), end - offset))])
        guard fill(block, from: part.descriptor, at: offset) else { return false }
        body(UnsafeRawBufferPointer(block), offset)
        offset += Int64(block.count)
      }
    }
    return true
  }

  /// Fills `block` with the bytes of a file from `offset` on; returns false if the file has fewer.
  private static func fill(
    _ block: UnsafeMutableRawBufferPointer, from descriptor: CInt, at offset: Int64
  ) -> Bool {
    var done = 0
    while done < block.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: block[done...])
      guard
        let count = try? SystemCalls.read(descriptor, into: rest, at: offset + Int64(done)),
        count > 0
      else { return false }
      done += count
    }
    return true
  }
}
