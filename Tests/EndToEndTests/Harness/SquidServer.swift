import Foundation
import Glibc

/// A squid that forwards and stores nothing, with its own configuration, port and log.
final class SquidServer {
  let port: UInt16
  private let process: ChildProcess
  private let logPath: String

  /// Starts the proxy and waits until it listens.
  ///
  /// - Parameters:
  ///   - directory: the directory for configuration and logs. Other users must be able to write to
  ///     it, because squid does not stay root.
  ///   - credentials: required of every client, if given.
  /// - Throws: `HarnessError` if it does not listen in time.
  init(directory: String, credentials: ServerFeatures.Credentials? = nil) throws {
    guard chmod(directory, 0o777) == 0 else { throw HarnessError.systemCall("chmod") }
    port = try FreePort.next()
    logPath = "\(directory)/access.log"
    var access = "http_access allow all"
    if let credentials {
      let hash = try output(of: ["openssl", "passwd", "-apr1", credentials.password])
      try "\(credentials.user):\(hash)".write(
        toFile: "\(directory)/passwords", atomically: true, encoding: .utf8)
      access = """
        auth_param basic program /usr/lib/squid/basic_ncsa_auth \(directory)/passwords
        acl users proxy_auth REQUIRED
        http_access allow users
        http_access deny all
        """
    }
    let configuration = """
      http_port 127.0.0.1:\(port)
      \(access)
      cache deny all
      cache_mem 8 MB
      access_log stdio:\(logPath)
      cache_log \(directory)/cache.log
      pid_filename none
      netdb_filename none
      coredump_dir \(directory)
      pinger_enable off
      shutdown_lifetime 0 seconds
      max_filedescriptors 1024
      visible_hostname squid.test

      """
    let path = "\(directory)/squid.conf"
    try configuration.write(toFile: path, atomically: true, encoding: .utf8)
    process = try ChildProcess(
      ["squid", "-N", "-f", path], environment: ["PATH": Host.administratorPath])
    let (port, process) = (port, process)
    let ready = Deadline(after: .seconds(30)).wait {
      FreePort.isListening(port) || !process.isRunning
    }
    guard ready, process.isRunning else {
      let log = (try? String(contentsOfFile: "\(directory)/cache.log", encoding: .utf8)) ?? ""
      throw HarnessError("squid did not start: \(process.standardError)\(log)")
    }
  }

  deinit { stop() }

  /// The proxy's URL for `--proxy`.
  func url(userInfo: String = "") -> String { "http://\(userInfo)127.0.0.1:\(port)" }

  /// The methods, URLs and statuses of the requests that have ended so far: `GET http://… 200`.
  ///
  /// For https, the method and URL are `CONNECT host:port`.
  func requests() throws -> [String] {
    let text = (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard words.count > 6, let status = words[3].split(separator: "/").last else { return nil }
      return "\(words[5]) \(words[6]) \(status)"
    }
  }

  /// Sends a signal to the proxy, such as SIGSTOP.
  func signal(_ number: CInt) { process.signal(number) }

  func stop() {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(5)) == nil { process.kill() }
  }
}

/// A microsocks: a SOCKS5 proxy that resolves names itself.
final class SOCKSServer {
  let port: UInt16
  private let process: ChildProcess

  init(credentials: ServerFeatures.Credentials? = nil) throws {
    port = try FreePort.next()
    var arguments = ["microsocks", "-i", "127.0.0.1", "-p", String(port)]
    if let credentials { arguments += ["-u", credentials.user, "-P", credentials.password] }
    process = try ChildProcess(arguments)
    let (port, process) = (port, process)
    let ready = Deadline(after: .seconds(10)).wait {
      FreePort.isListening(port) || !process.isRunning
    }
    guard ready, process.isRunning else {
      throw HarnessError("microsocks did not start: \(process.standardError)")
    }
  }

  deinit {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(3)) == nil { process.kill() }
  }

  /// The connections that it has made: `client[4] 127.0.0.1: connected to host:port`, one per line.
  var log: String { process.standardError + process.standardOutput }
}
