import Glibc

/// A port on loopback that refuses connections, and that nobody else gets until it is closed.
///
/// Whoever closes a port that was free a moment ago may find another test's server there.
struct RefusingPort {
  let number: UInt16
  private let socket: CInt

  init() throws { (socket, number) = try ScriptedServer.bind(accepting: false) }

  func close() { Glibc.close(socket) }
}
