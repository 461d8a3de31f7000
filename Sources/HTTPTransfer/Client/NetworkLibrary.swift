internal import CCurl

/// The library that talks to servers, as it is installed.
package struct NetworkLibrary: Sendable {
  /// With the libraries that it uses: `libcurl/7.88.1 OpenSSL/3.0.17 …`.
  package let version: String
  /// Its TLS library; nil where it has none.
  package let tls: String?

  package static var current: NetworkLibrary {
    NetworkLibrary(
      version: String(cString: curl_version()),
      tls: curl_version_info(CURLVERSION_FIRST)?.pointee.ssl_version.map { String(cString: $0) })
  }
}
