/// The features of a real web server of the tests, in addition to serving the files of its root.
struct ServerFeatures {
  /// Serves everything also over TLS, at a second port.
  var certificate: CertificateAuthority.Certificate?
  /// Offers HTTP/2 in addition to HTTP/1.1 at the TLS port.
  var http2 = false
  /// Compresses `.txt` files for clients that accept gzip.
  var compressesText = false
  /// Accepts PUT below `/upload/`, and below `/private/` if there are credentials.
  var acceptsUploads = false
  /// Required (basic authentication) for everything below `/private/`.
  var credentials: Credentials?

  /// A user's name and password.
  struct Credentials {
    let user: String
    let password: String
  }
}
