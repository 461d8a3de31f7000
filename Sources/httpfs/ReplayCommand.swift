import AccessTrace
import ArgumentParser
import LinuxSystem
import RemoteFiles

/// `httpfs replay`: what a recorded run of a program would cost on a given network.
struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Compute what a trace of 'httpfs mount --trace' would cost on a given network.",
    discussion: """
      Fetches nothing: the planner of a mount with an empty cache runs on a simulated network. The \
      figures are the same each time.
      """)

  @Argument(help: "The trace.", completion: .file())
  var file: String

  @Option(
    help: ArgumentHelp(
      "Time from a request to the first byte of its response.", valueName: "milliseconds")
  )
  var roundTrip: Double = 50

  @Option(
    help: ArgumentHelp(
      "Maximum bytes per second of one connection; K, M, G and T may follow.",
      valueName: "bytes"))
  var connectionRate: ByteSize?

  @Option(
    help: ArgumentHelp(
      "Maximum bytes per second of all connections together (default: 125000000).",
      valueName: "bytes"))
  var totalRate: ByteSize?

  @Option(help: ArgumentHelp("Connections per file (default: adaptive).", valueName: "n"))
  var connections: Int?

  func validate() throws {
    guard roundTrip >= 0, roundTrip <= 60_000 else {
      throw ValidationError("--round-trip must be from 0 to 60000 milliseconds")
    }
    if let connections, !(1...64).contains(connections) {
      throw ValidationError("--connections must be from 1 to 64")
    }
  }

  func run() throws {
    try reportingFailure {
      let network = ReplayNetwork(
        roundTrip: roundTrip / 1000,
        connectionRate: Double(connectionRate?.byteCount ?? 125_000_000),
        totalRate: Double(totalRate?.byteCount ?? 125_000_000))
      var simulation = ReplaySimulation(try trace(), over: network, connections: connections)
      try printToStandardOutput(Array(text(simulation.run()).utf8))
    }
  }

  private func trace() throws(CommandFailure) -> AccessTrace {
    let text: [UInt8]
    do throws(ErrorNumber) {
      text = try StreamCalls.contents(ofFile: file, maximumByteCount: AccessTrace.maximumByteCount)
    } catch {
      throw CommandFailure("cannot read trace '\(file)'", error)
    }
    do throws(AccessTrace.ParseError) {
      return try AccessTrace(text: text)
    } catch {
      throw CommandFailure("\(file):\(error.line): \(error.reason)")
    }
  }

  private func text(_ figures: ReplayFigures) -> String {
    let rows = [
      ("reads", "\(figures.readCount)"),
      ("bytes read", "\(figures.readByteCount)"),
      ("bytes read, each once", "\(figures.wantedByteCount)"),
      ("bytes fetched", "\(figures.fetchedByteCount)"),
      ("requests", "\(figures.requestCount)"),
      ("connections", "\(figures.connectionCount)"),
      ("waits", "\(figures.waitCount)"),
      ("waited, s", fixed(figures.waitedSeconds)),
      ("elapsed, s", fixed(figures.elapsedSeconds)),
    ]
    return rows.map { name, value in
      name + String(repeating: " ", count: 24 - name.count) + value + "\n"
    }.joined()
  }

  /// A number with three decimals.
  private func fixed(_ value: Double) -> String {
    let thousandths = Int((value * 1000).rounded())
    let fraction = String(thousandths % 1000)
    return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }
}
