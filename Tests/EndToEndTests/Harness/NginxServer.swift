import Foundation
import Glibc

/// An nginx with a configuration, a port and logs of its own; no other nginx is touched.
final class NginxServer {
  let port: UInt16
  /// The directory whose files are served at `/`.
  let root: String
  private let process: ChildProcess
  private let accessLog: String
  private let errorLog: String
  private var logOffset = 0

  /// Starts the server and waits until it answers.
  ///
  /// - Parameters:
  ///   - root: the directory to serve.
  ///   - directory: where configuration and logs go.
  ///   - locations: further `location` blocks of the configuration.
  /// - Throws: `HarnessError` where it does not listen in time.
  init(root: String, directory: String, locations: String = "") throws {
    self.root = root
    accessLog = "\(directory)/access.log"
    errorLog = "\(directory)/error.log"
    port = try FreePort.next()
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
        log_format requests escape=json
          '{"end":$msec,"duration":$request_time,"connection":$connection,"method":"$request_method",'
          '"path":"$uri","range":"$http_range","status":$status,"body_bytes":$body_bytes_sent}';
        access_log \(accessLog) requests;
        server {
          listen 127.0.0.1:\(port) backlog=4096;
          root \(root);
      \(locations)
        }
      }
      """
    let configurationPath = "\(directory)/nginx.conf"
    try configuration.write(toFile: configurationPath, atomically: true, encoding: .utf8)
    process = try ChildProcess(
      ["nginx", "-p", directory, "-e", errorLog, "-c", configurationPath],
      environment: ["PATH": "/usr/sbin:/sbin:/usr/local/sbin:" + environmentPath])
    let (port, process) = (port, process)
    let ready = Deadline(after: .seconds(10)).wait {
      FreePort.isListening(port) || !process.isRunning
    }
    guard ready, process.isRunning else {
      let log = (try? String(contentsOfFile: errorLog, encoding: .utf8)) ?? ""
      throw HarnessError("nginx did not start: \(process.standardError)\(log)")
    }
  }

  deinit { stop() }

  /// The URL of a file below the root.
  func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

  /// The requests that have ended since the last call, once the log is quiet.
  func takeRequests() throws -> [LoggedRequest] {
    var size = -1
    // nginx writes a request's line after its last byte: wait until nothing is added any more.
    _ = Deadline(after: .seconds(5)).wait(every: .milliseconds(150)) {
      let now = Int(FileStatus.byteCount(of: accessLog) ?? 0)
      defer { size = now }
      return now == size
    }
    let data = FileManager.default.contents(atPath: accessLog) ?? Data()
    let lines = data.dropFirst(logOffset)
    logOffset = data.count
    return try lines.split(separator: UInt8(ascii: "\n")).map { line in
      let entry = try JSONDecoder().decode(Entry.self, from: Data(line))
      return LoggedRequest(
        path: entry.path, method: entry.method, range: entry.range.isEmpty ? nil : entry.range,
        status: entry.status, bodyByteCount: entry.body_bytes, connection: entry.connection,
        start: entry.end - entry.duration, end: entry.end)
    }
  }

  func stop() {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(3)) == nil { process.kill() }
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
  }
}

/// The search path of this process.
private var environmentPath: String {
  ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
}
