import LinuxSystem

/// The client's end of a connection within this machine, from the kernel's table of TCP sockets.
///
/// While the origin receives no bytes, it does not notice that a client closed before it sent its
/// whole body, because the client's FIN waits behind the bytes. For clients on this machine, which
/// are the usual ones, the table shows the close (proc(5), /proc/net/tcp). For other clients, the
/// origin notices when their kernel gives up.
struct LocalPeer {
  private static let tablePaths = ["/proc/net/tcp", "/proc/net/tcp6"]

  /// The states of a socket that its process has not closed: ESTABLISHED and CLOSE_WAIT.
  private static let openStates: Set<Substring> = ["01", "08"]

  /// The suffix of the client's socket address in the table: `:PORT`, four hexadecimal digits.
  private let clientPort: String
  private let ownPort: String

  /// The peer of a client that connected from one port to another.
  init(clientPort: UInt16, ownPort: UInt16) {
    self.clientPort = Self.suffix(clientPort)
    self.ownPort = Self.suffix(ownPort)
  }

  /// Whether the client has closed its socket; false if unknown.
  ///
  /// A closed socket stays in the table until its bytes are received.
  func hasClosed() -> Bool {
    for path in Self.tablePaths {
      guard let bytes = try? StreamCalls.contents(ofFile: path) else { continue }
      for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst() {
        // A number, the socket's address, the peer's address, the state.
        let columns = line.split(separator: " ", maxSplits: 4)
        guard columns.count > 3, columns[1].hasSuffix(clientPort), columns[2].hasSuffix(ownPort)
        else { continue }
        return !Self.openStates.contains(columns[3])
      }
    }
    return false
  }

  private static func suffix(_ port: UInt16) -> String {
    let digits = String(port, radix: 16, uppercase: true)
    return ":" + String(repeating: "0", count: 4 - digits.count) + digits
  }
}
