import Foundation
import Glibc
import Synchronization

/// A network namespace of one test, with its own interfaces, addresses and routes.
///
/// Only the test connects it to other networks. Its creation needs root.
final class NetworkNamespace {
  let name: String

  private static let count = Mutex(0)

  /// Creates the namespace with its loopback interface up.
  ///
  /// - Throws: `HarnessError` if the user is not root, or if iproute2 or the kernel's support is
  ///   missing.
  init() throws {
    guard Host.isRoot else { throw HarnessError("network namespaces need root") }
    let number = Self.count.withLock { count in
      count += 1
      return count
    }
    name = "httpfs-\(getpid())-\(number)"
    try Self.run(["ip", "netns", "add", name])
    try ip("link", "set", "lo", "up")
  }

  deinit {
    // The kernel removes its interfaces when its last process has ended.
    _ = try? Self.run(["ip", "netns", "delete", name])
  }

  /// The words before a command line that must run in the namespace, with the host's files.
  var enter: [String] { ["nsenter", "--net=/run/netns/\(name)", "--"] }

  /// Runs `ip` on the namespace.
  @discardableResult
  func ip(_ arguments: String...) throws -> String {
    try Self.run(["ip", "-netns", name] + arguments)
  }

  /// Connects this namespace to another by a cable (veth); both ends are up.
  ///
  /// - Parameters:
  ///   - other: the namespace at the other end.
  ///   - addresses: of this end, with their prefix lengths.
  ///   - otherAddresses: of the other end.
  /// - Returns: the name of the interface, which is the same at both ends.
  /// - Throws: `HarnessError` if `ip` fails.
  func connect(
    to other: NetworkNamespace, addresses: [String], otherAddresses: [String]
  ) throws -> String {
    let interface = "cable0"
    try ip(
      "link", "add", interface, "type", "veth", "peer", "name", interface, "netns", other.name)
    for (namespace, addresses) in [(self, addresses), (other, otherAddresses)] {
      for address in addresses {
        // Without duplicate detection, an IPv6 address is usable at once.
        let flags = address.contains(":") ? ["nodad"] : []
        try Self.run(
          ["ip", "-netns", namespace.name, "address", "add", address, "dev", interface] + flags)
      }
      try namespace.ip("link", "set", interface, "up")
    }
    return interface
  }

  /// Makes `address` a black hole: packets to it leave, and no answer arrives.
  func swallow(_ address: String, interface: String) throws {
    try ip(
      "neighbor", "replace", address, "lladdr", "02:00:00:00:00:99", "dev", interface, "nud",
      "permanent")
  }

  @discardableResult
  private static func run(_ arguments: [String]) throws -> String {
    try output(of: ["env", "PATH=\(Host.administratorPath)"] + arguments, within: .seconds(20))
  }
}
