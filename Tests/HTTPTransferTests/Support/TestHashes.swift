import CCrypto
import HTTPTransferCore

/// SHA-256 by libcrypto, to check a transfer's hashes.
enum TestHashes {
  static func sha256(_ bytes: some Collection<UInt8>) -> [UInt8] {
    let context = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(context) }
    EVP_DigestInit_ex(context, EVP_sha256(), nil)
    Array(bytes).withUnsafeBytes { _ = EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
    var digest = [UInt8](repeating: 0, count: 32)
    EVP_DigestFinal_ex(context, &digest, nil)
    return digest
  }

  static func checksum(_ bytes: [UInt8]) -> Checksum {
    Checksum(algorithm: .sha256, digest: sha256(bytes))
  }

  static func pieces(_ bytes: [UInt8], of pieceByteCount: Int) -> PieceHashes? {
    PieceHashes(
      algorithm: .sha256, pieceByteCount: Int64(pieceByteCount),
      digests: stride(from: 0, to: bytes.count, by: pieceByteCount).map {
        sha256(bytes[$0..<min(bytes.count, $0 + pieceByteCount)])
      })
  }
}
