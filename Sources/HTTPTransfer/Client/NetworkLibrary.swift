internal import CCrypto
internal import CCurl

/// The installed network library.
package struct NetworkLibrary: Sendable {
  /// Its version with the libraries that it uses: `libcurl/7.88.1 OpenSSL/3.0.17 …`.
  package let version: String
  /// Its TLS library; nil if it has none.
  package let tls: String?

  package static var current: NetworkLibrary {
    NetworkLibrary(
      version: String(cString: curl_version()),
      tls: curl_version_info(CURLVERSION_FIRST)?.pointee.ssl_version.map { String(cString: $0) })
  }

  /// Leaves libcrypto usable during `exit(3)`: other threads may still hash then.
  ///
  /// By default, libcrypto frees its state in an exit handler. Call it before any other use of
  /// libcrypto (`OPENSSL_init_crypto(3)`).
  package static func keepCryptoAtExit() {
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
  }
}
