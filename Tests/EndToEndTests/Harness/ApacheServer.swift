import Foundation
import Glibc

/// An Apache httpd with its own configuration, ports and logs; the harness touches no other Apache.
///
/// The tests use it beside nginx because it differs where clients fail: it compresses with a
/// changed entity tag, refuses with a body, closes connections after errors, and speaks HTTP/2 with
/// other limits.
final class ApacheServer {
  let port: UInt16
  /// The TLS port; nil without a certificate.
  let tlsPort: UInt16?
  /// The root directory, whose files are served at `/`.
  let root: String
  /// The directories behind `/upload/` and `/private/`.
  let writable: WritableArea
  private let process: ChildProcess
  private var log: ServerLog

  /// The user that serves: Apache refuses to serve as root and becomes this user, which every
  /// Debian system has.
  private static let unprivilegedUser = "www-data"
  /// The directory in which Debian's `apache2-bin` keeps the modules.
  private static let moduleDirectory = "/usr/lib/apache2/modules"
  private static let baseModules = ["mpm_event", "authz_core", "mime", "setenvif"]

  /// Starts the server and waits until it answers.
  ///
  /// - Parameters:
  ///   - root: the directory to serve; it must be readable by all if the tests run as root.
  ///   - directory: the directory for configuration and logs.
  ///   - configuration: further directives of the server.
  ///   - features: TLS, HTTP/2, compression, uploads and passwords.
  /// - Throws: `HarnessError` if it does not listen in time.
  init(
    root: String, directory: String, configuration: String = "",
    features: ServerFeatures = ServerFeatures()
  ) throws {
    self.root = root
    log = ServerLog(path: "\(directory)/access.log")
    writable = try WritableArea(
      in: directory, features: features, owner: Host.isRoot ? Self.unprivilegedUser : nil)
    port = try FreePort.next()
    tlsPort = features.certificate == nil ? nil : try FreePort.next()
    let errorLog = "\(directory)/error.log"
    let modules = Self.baseModules + Self.modules(for: features)
    let text = """
      ServerRoot \(directory)
      DefaultRuntimeDir \(directory)
      PidFile \(directory)/apache.pid
      ServerName localhost
      Listen 127.0.0.1:\(port)
      \(modules.map { "LoadModule \($0)_module \(Self.moduleDirectory)/mod_\($0).so" }
        .joined(separator: "\n"))
      Mutex file:\(directory) default
      ErrorLog \(errorLog)
      LogLevel warn
      # Two processes of 64 threads: enough for the connections of any test.
      StartServers 1
      ServerLimit 2
      ThreadLimit 64
      ThreadsPerChild 64
      MinSpareThreads 1
      MaxSpareThreads 128
      MaxRequestWorkers 128
      MaxKeepAliveRequests 0
      KeepAliveTimeout 60
      EnableSendfile On
      TypesConfig /dev/null
      AddType text/plain .txt
      LogFormat "%{end:usec}t\\t%D\\t%{remote}p\\t%m\\t%U\\t%{Range}i\\t%>s\\t%B\\t%H" requests
      GlobalLog \(log.path) requests
      DocumentRoot \(root)
      <Directory />
        Require all granted
      </Directory>
      \(Host.isRoot ? "User \(Self.unprivilegedUser)\nGroup \(Self.unprivilegedUser)" : "")
      \(Self.compression(features))
      \(Self.writableLocations(features, writable, directory: directory))
      \(configuration)
      \(Self.tls(features, port: tlsPort))
      """
    let configurationPath = "\(directory)/apache.conf"
    try text.write(toFile: configurationPath, atomically: true, encoding: .utf8)
    // In the foreground, its processes stay in the child's process group, which ends as a whole.
    process = try ChildProcess(
      ["apache2", "-d", directory, "-E", errorLog, "-f", configurationPath, "-D", "FOREGROUND"],
      environment: ["PATH": Host.administratorPath])
    let (ports, process) = ([port, tlsPort ?? port], process)
    let ready = Deadline(after: .seconds(10)).wait {
      ports.allSatisfy(FreePort.isListening) || !process.isRunning
    }
    guard ready, process.isRunning else {
      let errors = (try? String(contentsOfFile: errorLog, encoding: .utf8)) ?? ""
      throw HarnessError("Apache did not start: \(process.standardError)\(errors)")
    }
  }

  deinit { stop() }

  /// The URL of a file below the root.
  func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

  /// The URL of a file below the root over TLS.
  ///
  /// - Parameters:
  ///   - path: relative to the root.
  ///   - host: `localhost` or `127.0.0.1`; a good certificate is valid for both.
  /// - Returns: the URL.
  /// - Throws: `HarnessError` if the server has no certificate.
  func secureURL(_ path: String, host: String = "localhost") throws -> String {
    guard let tlsPort else { throw HarnessError("this Apache has no certificate") }
    return "https://\(host):\(tlsPort)/\(path)"
  }

  /// The requests that have ended since the last call, once the log is quiet.
  ///
  /// A request's `connection` is the client's port: no two open connections have the same one.
  func takeRequests() throws -> [LoggedRequest] {
    try log.takeLines().map { line in
      let text = String(decoding: line, as: UTF8.self)
      let fields = text.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      guard fields.count == 9, let end = Double(fields[0]), let duration = Double(fields[1]),
        let connection = Int(fields[2]), let status = Int(fields[6]),
        let bodyByteCount = Int64(fields[7])
      else { throw HarnessError("Apache logged what its format does not say: \(text)") }
      return LoggedRequest(
        path: fields[4], method: fields[3], range: fields[5] == "-" ? nil : fields[5],
        status: status, bodyByteCount: bodyByteCount, connection: connection,
        start: (end - duration) / 1e6, end: end / 1e6, protocolVersion: fields[8])
    }
  }

  /// Ends the server with all its processes; later connections are refused.
  func stop() {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(5)) == nil { process.kill() }
  }

  private static func modules(for features: ServerFeatures) -> [String] {
    var modules: [String] = []
    if features.certificate != nil { modules += ["socache_shmcb", "ssl"] }
    if features.http2 { modules.append("http2") }
    if features.compressesText { modules += ["filter", "deflate"] }
    if features.acceptsUploads { modules += ["dav", "dav_fs"] }
    if features.credentials != nil {
      modules += ["authn_core", "authn_file", "authz_user", "auth_basic"]
    }
    if features.acceptsUploads || features.credentials != nil { modules.append("alias") }
    return modules
  }

  private static func compression(_ features: ServerFeatures) -> String {
    features.compressesText ? "AddOutputFilterByType DEFLATE text/plain" : ""
  }

  private static func writableLocations(
    _ features: ServerFeatures, _ writable: WritableArea, directory: String
  ) -> String {
    let uploads = features.acceptsUploads ? "Dav On" : ""
    var directives: [String] = []
    if features.acceptsUploads {
      directives.append(
        """
        DavLockDB \(directory)/writable/locks
        Alias /upload/ \(writable.root)/upload/
        <Location /upload/>
          Dav On
        </Location>
        """)
    }
    if let passwordFile = writable.passwordFile {
      directives.append(
        """
        Alias /private/ \(writable.root)/private/
        <Location /private/>
          \(uploads)
          AuthType Basic
          AuthName private
          AuthBasicProvider file
          AuthUserFile \(passwordFile)
          Require valid-user
        </Location>
        """)
    }
    return directives.joined(separator: "\n")
  }

  private static func tls(_ features: ServerFeatures, port: UInt16?) -> String {
    guard let port, let certificate = features.certificate else { return "" }
    return """
      Listen 127.0.0.1:\(port)
      SSLSessionCache none
      <VirtualHost 127.0.0.1:\(port)>
        SSLEngine on
        SSLCertificateFile \(certificate.path)
        SSLCertificateKeyFile \(certificate.keyPath)
        Protocols \(features.http2 ? "h2 " : "")http/1.1
      </VirtualHost>
      """
  }
}
