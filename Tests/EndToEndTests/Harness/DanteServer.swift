import Foundation
import Glibc

/// A danted: a SOCKS server that also supports version 4.
final class DanteServer {
  let port: UInt16
  private let process: ChildProcess
  private let logPath: String

  /// Starts the server and waits until it listens.
  ///
  /// - Parameter directory: the directory for its configuration and its log.
  /// - Throws: `HarnessError` if it does not listen in time.
  init(directory: String) throws {
    port = try FreePort.next()
    logPath = "\(directory)/log"
    let path = "\(directory)/danted.conf"
    let configuration = """
      logoutput: \(logPath)
      internal: 127.0.0.1 port = \(port)
      external: lo
      clientmethod: none
      socksmethod: none
      client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
      socks pass {
        from: 127.0.0.0/8 to: 0.0.0.0/0
        log: connect error
        proxyprotocol: socks_v4
      }

      """
    try configuration.write(toFile: path, atomically: true, encoding: .utf8)
    process = try ChildProcess(
      ["danted", "-f", path, "-p", "\(directory)/pid", "-N", "1"],
      environment: ["PATH": Host.administratorPath])
    let (port, process) = (port, process)
    let ready = Deadline(after: .seconds(10)).wait {
      FreePort.isListening(port) || !process.isRunning
    }
    guard ready, process.isRunning else {
      throw HarnessError("danted did not start: \(process.standardError)")
    }
  }

  deinit { stop() }

  var log: String { (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? "" }

  /// The number of connections that it has made for its clients.
  var connectionCount: Int {
    log.split(separator: "\n").count { $0.contains("tcp/connect [") }
  }

  func stop() {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(5)) == nil { process.kill() }
  }
}
