import Foundation
import Glibc

/// An nginx with its own configuration, ports and logs; the harness touches no other nginx.
final class NginxServer {
  let port: UInt16
  /// The TLS port; nil without a certificate.
  let tlsPort: UInt16?
  /// The root directory, whose files are served at `/`.
  let root: String
  /// The directories behind `/upload/` and `/private/`.
  let writable: WritableArea
  private let process: ChildProcess
  private var log: ServerLog

  /// Starts the server and waits until it answers.
  ///
  /// - Parameters:
  ///   - root: the directory to serve.
  ///   - directory: the directory for configuration and logs.
  ///   - locations: further `location` blocks of the configuration.
  ///   - features: TLS, HTTP/2, compression, uploads and passwords.
  /// - Throws: `HarnessError` if it does not listen in time.
  init(
    root: String, directory: String, locations: String = "",
    features: ServerFeatures = ServerFeatures()
  ) throws {
    self.root = root
    let errorLog = "\(directory)/error.log"
    log = ServerLog(path: "\(directory)/access.log")
    writable = try WritableArea(in: directory, features: features)
    port = try FreePort.next()
    tlsPort = features.certificate == nil ? nil : try FreePort.next()
    let configuration = """
      daemon off;
      # One process, so that nothing is left behind whichever way it ends; it runs as its starter.
      master_process off;
      worker_rlimit_nofile 8192;
      pid \(directory)/nginx.pid;
      error_log \(errorLog) warn;
      events { worker_connections 4096; }
      http {
        client_body_temp_path \(directory)/client-body;
        proxy_temp_path \(directory)/proxy;
        fastcgi_temp_path \(directory)/fastcgi;
        uwsgi_temp_path \(directory)/uwsgi;
        scgi_temp_path \(directory)/scgi;
        default_type application/octet-stream;
        sendfile on;
        tcp_nopush on;
        keepalive_requests 1000000;
        client_max_body_size 0;
        log_format requests escape=json
          '{"end":$msec,"duration":$request_time,"connection":$connection,"method":"$request_method",'
          '"path":"$uri","range":"$http_range","status":$status,"body_bytes":$body_bytes_sent,'
          '"protocol":"$server_protocol"}';
        access_log \(log.path) requests;
        server {
          listen 127.0.0.1:\(port) backlog=4096;
          root \(root);
      \(Self.tls(features, port: tlsPort))
      \(Self.compression(features))
      \(Self.writableLocations(features, writable))
      \(locations)
        }
      }
      """
    let configurationPath = "\(directory)/nginx.conf"
    try configuration.write(toFile: configurationPath, atomically: true, encoding: .utf8)
    process = try ChildProcess(
      ["nginx", "-p", directory, "-e", errorLog, "-c", configurationPath],
      environment: ["PATH": Host.administratorPath])
    let (ports, process) = ([port, tlsPort ?? port], process)
    let ready = Deadline(after: .seconds(10)).wait {
      ports.allSatisfy(FreePort.isListening) || !process.isRunning
    }
    guard ready, process.isRunning else {
      let errors = (try? String(contentsOfFile: errorLog, encoding: .utf8)) ?? ""
      throw HarnessError("nginx did not start: \(process.standardError)\(errors)")
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
    guard let tlsPort else { throw HarnessError("this nginx has no certificate") }
    return "https://\(host):\(tlsPort)/\(path)"
  }

  /// The requests that have ended since the last call, once the log is quiet.
  func takeRequests() throws -> [LoggedRequest] {
    try log.takeLines().map { line in
      let entry = try JSONDecoder().decode(Entry.self, from: line)
      return LoggedRequest(
        path: entry.path, method: entry.method, range: entry.range.isEmpty ? nil : entry.range,
        status: entry.status, bodyByteCount: entry.body_bytes, connection: entry.connection,
        start: entry.end - entry.duration, end: entry.end, protocolVersion: entry.protocol)
    }
  }

  func stop() {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(3)) == nil { process.kill() }
  }

  private static func tls(_ features: ServerFeatures, port: UInt16?) -> String {
    guard let port, let certificate = features.certificate else { return "" }
    return """
          listen 127.0.0.1:\(port) ssl\(features.http2 ? " http2" : "") backlog=4096;
          ssl_certificate \(certificate.path);
          ssl_certificate_key \(certificate.keyPath);
      """
  }

  private static func compression(_ features: ServerFeatures) -> String {
    guard features.compressesText else { return "" }
    return """
          types { text/plain txt; }
          gzip on;
          gzip_types text/plain;
          gzip_min_length 1;
      """
  }

  private static func writableLocations(
    _ features: ServerFeatures, _ writable: WritableArea
  ) -> String {
    let uploads = features.acceptsUploads ? "dav_methods PUT; create_full_put_path on;" : ""
    var locations: [String] = []
    if features.acceptsUploads {
      locations.append("    location /upload/ { root \(writable.root); \(uploads) }")
    }
    if let passwordFile = writable.passwordFile {
      locations.append(
        """
            location /private/ {
              root \(writable.root);
              \(uploads)
              auth_basic "private";
              auth_basic_user_file \(passwordFile);
            }
        """)
    }
    return locations.joined(separator: "\n")
  }

  /// A line of the access log, with the names of our `log_format`.
  private struct Entry: Decodable {
    let end: Double
    let duration: Double
    let connection: Int
    let method: String
    let path: String
    let range: String
    let status: Int
    // swift-format-ignore: AlwaysUseLowerCamelCase
    let body_bytes: Int64
    let `protocol`: String
  }
}
