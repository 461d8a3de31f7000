import Foundation

/// A certificate authority of one test; only programs that get its certificate trust it.
final class CertificateAuthority {
  /// A server's certificate and private key, both PEM files.
  struct Certificate {
    let path: String
    let keyPath: String
  }

  /// A host name that no test server has.
  static let otherHost = "other.invalid"

  /// The authority's own certificate, for `--cacert` and the like.
  let certificatePath: String
  private let directory: String
  private let configurationPath: String

  /// The purpose of a certificate: a section of the configuration.
  private enum Purpose: String {
    case localhost
    case otherHost = "other_host"
    case client
  }

  /// Creates the authority with its own key.
  ///
  /// - Parameter directory: an existing directory for its files.
  /// - Throws: `HarnessError` if the `openssl` command fails.
  init(directory: String) throws {
    self.directory = directory
    certificatePath = "\(directory)/ca.pem"
    configurationPath = "\(directory)/openssl.cnf"
    let configuration = """
      [ca]
      default_ca = authority
      [authority]
      database = \(directory)/index.txt
      new_certs_dir = \(directory)
      certificate = \(certificatePath)
      private_key = \(directory)/ca.key
      default_md = sha256
      policy = policy
      rand_serial = yes
      unique_subject = no
      [policy]
      commonName = supplied
      [req]
      distinguished_name = name
      [name]
      [authority_extensions]
      basicConstraints = critical, CA:TRUE
      keyUsage = critical, keyCertSign, cRLSign
      subjectKeyIdentifier = hash
      [\(Purpose.localhost.rawValue)]
      basicConstraints = critical, CA:FALSE
      extendedKeyUsage = serverAuth
      subjectAltName = DNS:localhost, IP:127.0.0.1
      [\(Purpose.otherHost.rawValue)]
      basicConstraints = critical, CA:FALSE
      extendedKeyUsage = serverAuth
      subjectAltName = DNS:\(Self.otherHost)
      [\(Purpose.client.rawValue)]
      basicConstraints = critical, CA:FALSE
      extendedKeyUsage = clientAuth
      """
    try configuration.write(toFile: configurationPath, atomically: true, encoding: .utf8)
    try "".write(toFile: "\(directory)/index.txt", atomically: true, encoding: .utf8)
    try request(
      subject: "httpfs test authority", keyPath: "\(directory)/ca.key", to: certificatePath,
      selfSignedWith: "authority_extensions")
  }

  /// A valid certificate for `localhost` and `127.0.0.1`.
  func certificate() throws -> Certificate {
    try issue("good", for: .localhost)
  }

  /// A certificate for the right host that was valid only in January 2020.
  func expiredCertificate() throws -> Certificate {
    try issue("expired", for: .localhost, validUntil: "200201000000Z")
  }

  /// A valid certificate for `otherHost`, which no test server is named.
  func otherHostCertificate() throws -> Certificate {
    try issue("other-host", for: .otherHost)
  }

  /// A certificate that identifies a client.
  func clientCertificate() throws -> Certificate {
    try issue("client", for: .client)
  }

  /// A self-signed certificate for the right host.
  func selfSignedCertificate() throws -> Certificate {
    let certificate = files("self-signed")
    try request(
      subject: "localhost", keyPath: certificate.keyPath, to: certificate.path,
      selfSignedWith: Purpose.localhost.rawValue)
    return certificate
  }

  private func files(_ name: String) -> Certificate {
    Certificate(path: "\(directory)/\(name).pem", keyPath: "\(directory)/\(name).key")
  }

  /// Creates a key and has its certificate signed by the authority.
  ///
  /// It uses `openssl ca`, the only command of OpenSSL 3.0 that accepts dates in the past, in the
  /// form `YYMMDDHHMMSSZ`.
  private func issue(
    _ name: String, for purpose: Purpose, validUntil end: String = "491231235959Z"
  ) throws -> Certificate {
    let certificate = files(name)
    let requestPath = "\(directory)/\(name).csr"
    try request(
      subject: purpose == .otherHost ? Self.otherHost : "localhost", keyPath: certificate.keyPath,
      to: requestPath, selfSignedWith: nil)
    try output(
      of: [
        "openssl", "ca", "-batch", "-notext", "-config", configurationPath, "-in", requestPath,
        "-out", certificate.path, "-extensions", purpose.rawValue, "-startdate", "200101000000Z",
        "-enddate", end,
      ])
    return certificate
  }

  /// Creates an elliptic-curve key, which is quick, and a request or a self-signed certificate.
  private func request(
    subject: String, keyPath: String, to path: String, selfSignedWith extensions: String?
  ) throws {
    var arguments = [
      "openssl", "req", "-new", "-config", configurationPath, "-newkey", "ec", "-pkeyopt",
      "ec_paramgen_curve:P-256", "-nodes", "-keyout", keyPath, "-subj", "/CN=\(subject)", "-out",
      path,
    ]
    if let extensions { arguments += ["-x509", "-days", "3650", "-extensions", extensions] }
    try output(of: arguments)
  }
}
