import Foundation
import Glibc

/// An `Origin` in a network namespace, by default at all of its IPv4 addresses.
final class NetworkNamespaceOrigin {
  static let port: UInt16 = 8080

  /// A line of its request log; see docs/ORIGIN.md.
  struct Request: Decodable {
    let path: String
    let method: String
    let range: String?
    let status: Int?
    let headers: [String: String]

    /// The requested host.
    var host: String { headers["host"]?.split(separator: ":").first.map(String.init) ?? "" }
  }

  private let namespace: NetworkNamespace
  private let process: ChildProcess
  /// The host through which the harness requests the log.
  private let controlHost: String

  init(in namespace: NetworkNamespace, address: String = "0.0.0.0") throws {
    self.namespace = namespace
    controlHost =
      address == "0.0.0.0" ? "127.0.0.1" : address.contains(":") ? "[\(address)]" : address
    let process = try ChildProcess(
      namespace.enter
        + [try Products.origin, "--address", address, "--port", String(Self.port)])
    self.process = process
    let isReady = Deadline(after: .seconds(10)).wait {
      process.standardOutput.contains("listening on ") || !process.isRunning
    }
    guard isReady, process.isRunning else {
      throw HarnessError("Origin did not start in a namespace: \(process.standardError)")
    }
  }

  deinit { stop() }

  /// The URL of a deterministic resource at one of the server's addresses or names.
  func url(
    _ host: String, _ name: String, length: Int64, seed: UInt64, query: String = ""
  ) -> String {
    let extra = query.isEmpty ? "" : "&" + query
    return "http://\(host):\(Self.port)/data/\(name)?length=\(length)&seed=\(seed)\(extra)"
  }

  /// Sets parameters of the resources that match `pattern`.
  func control(_ pattern: String, _ parameters: [String: String]) throws {
    let rule: [String: Any] = ["match": pattern, "parameters": parameters]
    let body = String(decoding: try JSONSerialization.data(withJSONObject: rule), as: UTF8.self)
    _ = try fetch("/control", ["--data-binary", body])
  }

  /// The requests that have ended.
  func requests() throws -> [Request] {
    try fetch("/log").split(separator: "\n").map {
      try JSONDecoder().decode(Request.self, from: Data($0.utf8))
    }.filter { $0.path.hasPrefix("/data/") }
  }

  func stop() {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(3)) == nil { process.kill() }
  }

  private func fetch(_ path: String, _ options: [String] = []) throws -> String {
    try output(
      of: namespace.enter + ["curl", "-sS", "--fail", "--noproxy", "*", "--max-time", "20"]
        + options + ["http://\(controlHost):\(Self.port)\(path)"])
  }
}
