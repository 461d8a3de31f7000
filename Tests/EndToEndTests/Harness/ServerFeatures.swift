/// What a real web server of the tests does beside serving the files of its root.
struct ServerFeatures {
  /// Serves everything over TLS too, at a second port.
  var certificate: CertificateAuthority.Certificate?
  /// Offers HTTP/2 beside HTTP/1.1 at the TLS port.
  var http2 = false
  /// Compresses `.txt` files for clients that accept gzip.
  var compressesText = false
  /// Takes PUT below `/upload/`, and below `/private/` where there are credentials.
  var acceptsUploads = false
  /// Asked for (basic authentication) by everything below `/private/`.
  var credentials: Credentials?

  /// A user's name and password.
  struct Credentials {
    let user: String
    let password: String
  }
}
