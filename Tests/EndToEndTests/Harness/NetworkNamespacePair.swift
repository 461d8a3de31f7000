import Foundation

/// The network namespaces of a client and a server with a cable between them.
///
/// They are like two machines without other networks.
final class NetworkNamespacePair {
  /// The server's addresses: two public ones, and one of a private network.
  static let publicAddress = "203.0.113.1"
  static let otherPublicAddress = "203.0.113.3"
  static let privateAddress = "10.9.9.1"
  static let publicAddress6 = "2001:db8::1"
  /// Addresses that are routed to the cable but that no machine has.
  static let deadAddress = "203.0.113.9"
  static let deadAddress6 = "2001:db8::9"

  let client: NetworkNamespace
  let server: NetworkNamespace
  let interface: String
  private let sandbox: Sandbox
  private let hostsPath: String

  init(_ sandbox: Sandbox) throws {
    self.sandbox = sandbox
    client = try NetworkNamespace()
    server = try NetworkNamespace()
    interface = try client.connect(
      to: server, addresses: ["203.0.113.2/24", "10.9.9.2/24", "2001:db8::2/64"],
      otherAddresses: [
        "\(Self.publicAddress)/24", "\(Self.otherPublicAddress)/24", "\(Self.privateAddress)/24",
        "\(Self.publicAddress6)/64",
      ])
    try client.swallow(Self.deadAddress, interface: interface)
    try client.swallow(Self.deadAddress6, interface: interface)
    hostsPath = try sandbox.write("127.0.0.1 localhost\n", to: "hosts-\(client.name)")
  }

  /// Assigns addresses to names, for processes that look them up from now on.
  ///
  /// The file is rewritten in place, because running processes see it through a bind mount.
  func setHosts(_ lines: String...) throws {
    let text = (["127.0.0.1 localhost"] + lines + [""]).joined(separator: "\n")
    try text.write(toFile: hostsPath, atomically: false, encoding: .utf8)
  }

  /// The words that start a command on the client's side, with only the names of `setHosts`.
  var launcher: [String] { client.enter + MountNamespace.launcher(["/etc/hosts": hostsPath]) }

  /// Sets the client's or the server's end of the cable up or down.
  func setLink(of namespace: NetworkNamespace, up isUp: Bool) throws {
    try namespace.ip("link", "set", interface, isUp ? "up" : "down")
  }

  /// The bytes that the client has received over the cable.
  var receivedByteCount: Int64 {
    get throws {
      // One line for each counter, whose name is in the previous line.
      let text = try client.ip("-statistics", "-oneline", "link", "show", "dev", interface)
      let words = text.split(whereSeparator: { " \\\n".contains($0) })
      guard let label = words.firstIndex(of: "RX:"),
        let count = words[label...].lazy.compactMap({ Int64($0) }).first
      else { throw HarnessError("no RX count of \(interface): \(text)") }
      return count
    }
  }

  /// Mounts `urls` on the client's side.
  func mount(_ urls: [String], options: [String] = [], cache: String = "cache") throws -> Mount {
    try MountNamespace.mount(
      sandbox, urls: urls, options: options, cache: cache, launcher: launcher)
  }

  /// Runs `httpfs` on the client's side in `work`.
  func run(
    _ work: TransferWorkspace, _ arguments: [String], within limit: Duration = .seconds(60)
  ) throws -> CommandResult {
    try EndToEndTests.run(
      launcher + (try work.commandLine(arguments)), environment: ["LC_ALL": "C.UTF-8"],
      within: limit)
  }
}
