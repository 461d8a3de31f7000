internal import CCrypto

/// Checks the user's PEM files before the first connection.
///
/// Otherwise libcurl would report an error with every request, and OpenSSL would ask for a password
/// on the terminal.
package enum CertificateCheck {
  package struct Failure: Error, Equatable, CustomStringConvertible {
    package let description: String
  }

  /// Checks that a bundle contains a certificate.
  package static func checkAuthorities(_ bytes: [UInt8]) throws(Failure) {
    guard let certificate = firstCertificate(bytes) else {
      throw Failure(
        description: "it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)")
    }
    X509_free(certificate)
  }

  /// Checks a client certificate and its private key.
  ///
  /// - Parameters:
  ///   - certificate: the bytes of the certificate's file.
  ///   - key: the bytes of the key's file, which may be the same.
  /// - Throws: what is wrong, and in which file.
  package static func checkPair(certificate: [UInt8], key: [UInt8]) throws(Failure) {
    guard let certificate = firstCertificate(certificate) else {
      throw Failure(
        description: "the certificate's file holds none in PEM form (-----BEGIN CERTIFICATE-----)")
    }
    defer { X509_free(certificate) }
    guard let privateKey = privateKey(key) else {
      let isEncrypted = String(decoding: key, as: UTF8.self).contains("ENCRYPTED")
      throw Failure(
        description: isEncrypted
          ? "the private key is encrypted: store it decrypted (openssl pkey), readable by you alone"
          : "the key's file holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)")
    }
    defer { EVP_PKEY_free(privateKey) }
    guard X509_check_private_key(certificate, privateKey) == 1 else {
      throw Failure(description: "the private key is not the certificate's")
    }
  }

  private static func firstCertificate(_ bytes: [UInt8]) -> OpaquePointer? {
    withReader(bytes) { PEM_read_bio_X509($0, nil, refusePassword, nil) }
  }

  private static func privateKey(_ bytes: [UInt8]) -> OpaquePointer? {
    withReader(bytes) { PEM_read_bio_PrivateKey($0, nil, refusePassword, nil) }
  }

  private static func withReader(_ bytes: [UInt8], _ body: (OpaquePointer) -> OpaquePointer?)
    -> OpaquePointer?
  {
    guard let count = Int32(exactly: bytes.count) else { return nil }
    return bytes.withUnsafeBytes { buffer in
      guard let reader = BIO_new_mem_buf(buffer.baseAddress, count) else { return nil }
      defer { BIO_free(reader) }
      return body(reader)
    }
  }
}

/// Returns no password for an encrypted key, instead of asking on the terminal.
private func refusePassword(
  buffer: UnsafeMutablePointer<CChar>?, size: Int32, isWriting: Int32,
  context: UnsafeMutableRawPointer?
) -> Int32 { -1 }
