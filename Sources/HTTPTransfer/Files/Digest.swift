internal import CCrypto
package import HTTPTransferCore
internal import LinuxSystem

/// A running hash over libcrypto's `EVP_MD_CTX`.
package final class RunningDigest {
  private let context: OpaquePointer?
  private let algorithm: Checksum.Algorithm

  package init(_ algorithm: Checksum.Algorithm) {
    self.algorithm = algorithm
    context = EVP_MD_CTX_new()
    let function =
      switch algorithm {
      case .md5: EVP_md5()
      case .sha1: EVP_sha1()
      case .sha224: EVP_sha224()
      case .sha256: EVP_sha256()
      case .sha384: EVP_sha384()
      case .sha512: EVP_sha512()
      }
    EVP_DigestInit_ex(context, function, nil)
  }

  deinit { EVP_MD_CTX_free(context) }

  package func update(_ bytes: UnsafeRawBufferPointer) {
    EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
  }

  /// The hash of all bytes; ends the calculation.
  package func finish() -> Checksum {
    var digest = [UInt8](repeating: 0, count: algorithm.digestByteCount)
    EVP_DigestFinal_ex(context, &digest, nil)
    return Checksum(algorithm: algorithm, digest: digest)
  }

  /// The hash of a range of a file.
  static func ofFile(
    _ descriptor: Descriptor, range: ByteRange, algorithm: Checksum.Algorithm
  ) throws(ErrorNumber) -> Checksum {
    let digest = RunningDigest(algorithm)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
      let count = try SystemCalls.read(descriptor.rawValue, into: piece, at: offset)
      guard count > 0 else { break }
      digest.update(UnsafeRawBufferPointer(rebasing: piece[..<count]))
      offset += Int64(count)
    }
    return digest.finish()
  }
}
