import CCrypto
import Glibc
import OriginContent

/// SHA-256, by libcrypto.
enum Digest {
  /// The digest, as 64 hexadecimal digits, of the bytes that `feed` passes to its argument.
  static func hex(
    _ feed: (_ update: (UnsafeRawBufferPointer) -> Void) throws -> Void
  ) rethrows -> String {
    let context = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(context) }
    EVP_DigestInit_ex(context, EVP_sha256(), nil)
    try feed { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    var bytes = [UInt8](repeating: 0, count: 32)
    EVP_DigestFinal_ex(context, &bytes, nil)
    return bytes.map { byte in
      let digits = String(byte, radix: 16)
      return byte < 16 ? "0" + digits : digits
    }.joined()
  }

  /// The digest of `byteCount` bytes of the Origin's content from `offset` on.
  static func ofContent(
    seed: UInt64, version: UInt64 = 1, offset: Int64 = 0, byteCount: Int64
  ) -> String {
    hex { update in
      TestContent.forEachPiece(
        seed: seed, version: version, offset: offset, byteCount: byteCount, update)
    }
  }
}

/// Bytes that are a function of (seed, version, offset), as the Origin serves them.
enum TestContent {
  /// Passes the bytes to `body` in pieces of at most 1 MiB.
  static func forEachPiece(
    seed: UInt64, version: UInt64 = 1, offset: Int64 = 0, byteCount: Int64,
    _ body: (UnsafeRawBufferPointer) throws -> Void
  ) rethrows {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { buffer.deallocate() }
    var position = offset
    let end = offset + byteCount
    while position < end {
      let count = Int(min(Int64(buffer.count), end - position))
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
      OriginContent.fill(piece, seed: seed, version: version, offset: position)
      try body(UnsafeRawBufferPointer(piece))
      position += Int64(count)
    }
  }

  /// FNV-1a of the bytes, as the Origin writes it in its log.
  static func fnv1a(seed: UInt64, byteCount: Int64) -> String {
    var hash = FNV1a()
    forEachPiece(seed: seed, byteCount: byteCount) { hash.update($0) }
    return hash.text
  }

  /// Writes a file of such bytes.
  static func write(
    to path: String, seed: UInt64, version: UInt64 = 1, byteCount: Int64
  ) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw HarnessError.systemCall("open \(path)") }
    defer { close(descriptor) }
    try forEachPiece(seed: seed, version: version, byteCount: byteCount) { piece in
      var done = 0
      while done < piece.count {
        let count = Glibc.write(
          descriptor, UnsafeRawBufferPointer(rebasing: piece[done...]).baseAddress,
          piece.count - done)
        guard count > 0 else { throw HarnessError.systemCall("write \(path)") }
        done += count
      }
    }
  }
}
