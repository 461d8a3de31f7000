internal import CCurl
internal import Glibc

/// The sockets of a client's connections, by local port: libcurl 7.88 does not report the socket of
/// the connection that a request will use.
///
/// Only the network thread uses it.
final class ConnectionSockets {
  private var descriptors: [UInt16: CInt] = [:]

  /// Whether a connection may be used for a request: unsolicited bytes on it would be taken for the
  /// head of the response.
  ///
  /// - Parameters:
  ///   - localPort: the connection's local port.
  ///   - opened: the sockets that were opened for the request; empty for a reused connection.
  /// - Returns: false if there are bytes to read; true also if the socket is unknown.
  func isClean(localPort: UInt16, opened: [CInt]) -> Bool {
    if let own = opened.first(where: { Self.localPort(of: $0) == localPort }) {
      descriptors[localPort] = own
      return true
    }
    // A closed descriptor may belong to another file by now.
    guard let descriptor = descriptors[localPort], Self.localPort(of: descriptor) == localPort
    else {
      return true
    }
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)) <= 0
  }

  /// The local port of a TCP socket (`getsockname(2)`); nil for anything else.
  private static func localPort(of descriptor: CInt) -> UInt16? {
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    guard result == 0, [AF_INET, AF_INET6].contains(CInt(address.sin6_family)) else { return nil }
    // Both address families store it at the same offset.
    return UInt16(bigEndian: address.sin6_port)
  }
}
