import Foundation
import Glibc
import Testing

/// A real server, of a kind that httpfs knows, that lists the directories below its root.
final class ListingServer {
  enum Kind: String, CaseIterable, CustomTestStringConvertible {
    case nginx, apache
    /// Apache with its listing as a table, as in Debian's configuration.
    case apacheTable = "apache (table)"
    case lighttpd, caddy, python

    var testDescription: String { rawValue }

    /// The program, which `scripts/install-deps` installs.
    fileprivate var program: String {
      switch self {
      case .nginx: "nginx"
      case .apache, .apacheTable: "apache2"
      case .lighttpd: "lighttpd"
      case .caddy: "caddy"
      case .python: "python3"
      }
    }
  }

  let port: UInt16
  private let stopServer: () -> Void

  /// Starts the server on `root`, with configuration and logs in `sandbox`.
  init(_ kind: Kind, root: String, in sandbox: Sandbox) throws {
    switch kind {
    case .nginx:
      let server = try sandbox.nginx(root: root, locations: "autoindex on;")
      port = server.port
      stopServer = server.stop
    case .apache, .apacheTable:
      let modules = "LoadModule autoindex_module /usr/lib/apache2/modules/mod_autoindex.so"
      let options =
        kind == .apache ? "" : "IndexOptions FancyIndexing HTMLTable VersionSort NameWidth=*"
      let server = try sandbox.apache(
        root: root,
        configuration: "\(modules)\n<Directory \(root)>\nOptions Indexes\n\(options)\n</Directory>")
      port = server.port
      stopServer = server.stop
    case .lighttpd:
      port = try FreePort.next()
      let configuration = try sandbox.write(
        """
        server.bind = "127.0.0.1"
        server.port = \(port)
        server.document-root = "\(root)"
        dir-listing.activate = "enable"
        dir-listing.encoding = "utf-8"
        """, to: "lighttpd.conf")
      stopServer = try Self.start([kind.program, "-D", "-f", configuration], port: port, sandbox)
    case .caddy:
      port = try FreePort.next()
      stopServer = try Self.start(
        [kind.program, "file-server", "--browse", "--root", root, "--listen", "127.0.0.1:\(port)"],
        port: port, sandbox)
    case .python:
      port = try FreePort.next()
      stopServer = try Self.start(
        Python.command(Self.pythonServer) + [String(port), root], port: port, sandbox)
    }
  }

  deinit { stop() }

  /// The URL of a path below the root.
  func url(_ path: String = "") -> String { "http://127.0.0.1:\(port)/\(path)" }

  func stop() { stopServer() }

  /// `python3 -m http.server` without ranges, as usual, but with a queue of more than 5
  /// connections.
  private static let pythonServer = """
    import functools, http.server, sys
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[2])
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
    """

  private static func start(
    _ command: [String], port: UInt16, _ sandbox: Sandbox
  ) throws -> () -> Void {
    let home = try sandbox.makeDirectory("home-\(port)")
    let process = try ChildProcess(
      command,
      environment: [
        "PATH": Host.administratorPath, "HOME": home, "XDG_CONFIG_HOME": home,
        "XDG_DATA_HOME": home,
      ])
    let ready = Deadline(after: .seconds(20)).wait(every: .milliseconds(20)) {
      FreePort.isListening(port) || !process.isRunning
    }
    guard ready, process.isRunning else {
      throw HarnessError("\(command[0]) did not start: \(process.standardError)")
    }
    return {
      process.signal(SIGTERM)
      if process.wait(within: .seconds(3)) == nil { process.kill() }
    }
  }
}
