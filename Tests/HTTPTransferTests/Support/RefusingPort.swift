import Glibc

/// A port on loopback that refuses connections, and that no other server gets until it is closed.
///
/// A port that was merely free a moment ago may belong to another test's server.
struct RefusingPort {
  let number: UInt16
  private let socket: CInt

  init() throws { (socket, number) = try ScriptedServer.bind(accepting: false) }

  func close() { Glibc.close(socket) }
}
