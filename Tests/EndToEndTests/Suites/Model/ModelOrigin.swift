import Foundation
import Glibc

/// An Origin that can stop and return with the current versions of its files.
final class ModelOrigin {
  let port: UInt16
  private var process: ChildProcess?
  private let scriptPath: String
  /// The current parameters of each path.
  private var rules: [String: [String: String]] = [:]

  /// Starts the Origin on a free port.
  ///
  /// - Parameter directory: the directory for the rules to start with.
  /// - Throws: `HarnessError` if it does not listen in time.
  init(directory: String) throws {
    scriptPath = directory + "/rules.json"
    let (process, port) = try Self.start(port: 0, scriptPath: nil)
    self.process = process
    self.port = port
  }

  deinit { stop() }

  /// Whether the server accepts connections.
  var isRunning: Bool { process != nil }

  /// Sets parameters of `path`; nil removes one.
  func set(_ path: String, _ parameters: [String: String?]) throws {
    for (name, value) in parameters {
      rules[path, default: [:]][name] = value
    }
    guard isRunning else { return }
    let values = parameters.mapValues { value -> Any in value ?? NSNull() as Any }
    let rule: [String: Any] = ["match": path, "parameters": values]
    let body = String(decoding: try JSONSerialization.data(withJSONObject: rule), as: UTF8.self)
    try output(
      of: [
        "curl", "-sS", "--fail", "--noproxy", "*", "--max-time", "10", "--data-binary", body,
        "http://127.0.0.1:\(port)/control",
      ])
  }

  /// Ends the server; later connections are refused.
  func stop() {
    guard let process else { return }
    process.signal(SIGTERM)
    if process.wait(within: .seconds(3)) == nil { process.kill() }
    self.process = nil
  }

  /// Starts the server on its previous port, with the current parameters.
  func restart() throws {
    let script = rules.sorted { $0.key < $1.key }.map { path, parameters in
      ["match": path, "parameters": parameters] as [String: Any]
    }
    let data = try JSONSerialization.data(withJSONObject: script)
    try data.write(to: URL(filePath: scriptPath))
    process = try Self.start(port: port, scriptPath: scriptPath).process
  }

  private static func start(
    port: UInt16, scriptPath: String?
  ) throws -> (process: ChildProcess, port: UInt16) {
    let script = scriptPath.map { ["--script", $0] } ?? []
    let process = try ChildProcess([try Products.origin, "--port", String(port)] + script)
    var found: UInt16?
    _ = Deadline(after: .seconds(10)).wait {
      let line = process.standardOutput.split(separator: "\n").first {
        $0.hasPrefix("listening on ")
      }
      found = line?.split(separator: ":").last.flatMap { UInt16($0) }
      return found != nil || !process.isRunning
    }
    guard let found else { throw HarnessError("Origin did not start: \(process.standardError)") }
    return (process, found)
  }
}
