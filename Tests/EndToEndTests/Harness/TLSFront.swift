import Foundation
import Glibc

/// A stunnel that adds TLS to a server without it.
final class TLSFront {
  let port: UInt16
  private let process: ChildProcess

  /// Starts the stunnel and waits until it listens.
  ///
  /// - Parameters:
  ///   - directory: the directory for its configuration.
  ///   - certificate: the certificate that it presents.
  ///   - port: the server's port on the loopback interface.
  /// - Throws: `HarnessError` if it does not listen in time.
  init(directory: String, certificate: CertificateAuthority.Certificate, port: UInt16) throws {
    self.port = try FreePort.next()
    let path = "\(directory)/stunnel.conf"
    let configuration = """
      foreground = yes
      pid =
      syslog = no
      debug = err
      [front]
      accept = 127.0.0.1:\(self.port)
      connect = 127.0.0.1:\(port)
      cert = \(certificate.path)
      key = \(certificate.keyPath)

      """
    try configuration.write(toFile: path, atomically: true, encoding: .utf8)
    process = try ChildProcess(
      ["stunnel4", path], environment: ["PATH": Host.administratorPath])
    let (own, process) = (self.port, process)
    let ready = Deadline(after: .seconds(10)).wait {
      FreePort.isListening(own) || !process.isRunning
    }
    guard ready, process.isRunning else {
      throw HarnessError("stunnel did not start: \(process.standardError)")
    }
  }

  deinit {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(3)) == nil { process.kill() }
  }
}
