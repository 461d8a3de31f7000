import LinuxSystem

/// The client's end of a connection within this machine, as the kernel's table of TCP sockets shows
/// it.
///
/// A client that closes before it has sent all of its body is not noticed while nothing is
/// received: its FIN waits behind the bytes. For clients on this machine, for which the origin is
/// made, the table shows it (proc(5), /proc/net/tcp). Others are noticed when their kernel gives
/// up.
struct LocalPeer {
  private static let tablePaths = ["/proc/net/tcp", "/proc/net/tcp6"]

  /// The states of a socket that its process has not closed: ESTABLISHED and CLOSE_WAIT.
  private static let openStates: Set<Substring> = ["01", "08"]

  /// How the ends of the client's socket end in the table: `:PORT`, four hexadecimal digits.
  private let clientPort: String
  private let ownPort: String

  /// The peer of a client that connected from one port to another.
  init(clientPort: UInt16, ownPort: UInt16) {
    self.clientPort = Self.suffix(clientPort)
    self.ownPort = Self.suffix(ownPort)
  }

  /// Whether the client has closed its socket, which stays in the table until its bytes are
  /// received; false if unknown.
  func hasClosed() -> Bool {
    for path in Self.tablePaths {
      guard let bytes = try? StreamCalls.contents(ofFile: path) else { continue }
      for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst() {
        // A number, the socket's own address, that of its peer, its state.
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
