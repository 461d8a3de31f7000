import ArgumentParser
import Glibc
import LinuxSystem
import OriginContent

/// The command line: starts the server, prints its address, and waits for a signal.
@main
struct OriginCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Origin",
    abstract: "A deterministic HTTP origin with latency, throttles and faults.",
    discussion: "The URLs, their parameters and the request log are described in docs/ORIGIN.md.")

  @Option(help: "The TCP port; 0 takes a free one.")
  var port: UInt16 = 0

  @Option(help: "The numeric IPv4 or IPv6 address to listen on.")
  var address = "127.0.0.1"

  @Option(help: "A file for the request log, one JSON object a line; replaced.")
  var log: String?

  @Option(help: "A JSON file with the rules to start with.")
  var script: String?

  @Option(help: "A directory whose files are served under /files/.")
  var root: String?

  func run() throws {
    // Before other threads start, so only sigwait below receives the signals.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTERM)
    sigaddset(&signals, SIGINT)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    signal(SIGPIPE, SIG_IGN)

    let server = OriginServer(
      root: try root.map { try FileRoot(path: $0) }, log: try RequestLog(path: log))
    if let script {
      server.apply(try CommandParser.commands(json: try Self.contents(of: script)))
    }
    let listener = try Listener(address: address, port: port)
    try listener.start(server)
    let line = "listening on \(listener.localAddress)\n"
    do throws(ErrorNumber) {
      try StreamCalls.write(Array(line.utf8), to: STDOUT_FILENO)
    } catch {
      throw FailedOperation("write to descriptor \(STDOUT_FILENO)", error)
    }

    var received: Int32 = 0
    sigwait(&signals, &received)
  }

  private static func contents(of path: String) throws(FailedOperation) -> [UInt8] {
    do throws(ErrorNumber) {
      return try StreamCalls.contents(ofFile: path)
    } catch {
      throw FailedOperation("\(error.rawValue == EISDIR ? "read" : "open") \(path)", error)
    }
  }
}
