import Glibc
import LinuxSystem

/// The listening socket and the thread that accepts connections.
final class Listener: Sendable {
  /// Thousands of clients may connect at once; the kernel limits this to net.core.somaxconn.
  private static let backlog: Int32 = 4096

  private let descriptor: Int32

  /// The listening address: `ADDRESS:PORT`, with an IPv6 address in brackets.
  let localAddress: String

  /// Binds and listens; errors name the address.
  init(address: String, port: UInt16) throws(FailedOperation) {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var results: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address, String(port), &hints, &results) == 0, let result = results else {
      throw FailedOperation("use the address \(address)", ErrorNumber(rawValue: EINVAL))
    }
    defer { freeaddrinfo(results) }
    let family = result.pointee.ai_family
    descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw FailedOperation("open a socket") }
    var one: Int32 = 1
    setsockopt(
      descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    guard bind(descriptor, result.pointee.ai_addr, result.pointee.ai_addrlen) == 0,
      listen(descriptor, Self.backlog) == 0
    else {
      let error = FailedOperation("listen on \(address) port \(port)")
      close(descriptor)
      throw error
    }
    let boundPort = OriginSystem.port(of: descriptor, named: getsockname)
    localAddress = family == AF_INET6 ? "[\(address)]:\(boundPort)" : "\(address):\(boundPort)"
  }

  deinit { close(descriptor) }

  /// Starts a thread that accepts connections until the process ends.
  func start(_ server: OriginServer) throws(FailedOperation) {
    // Each connection needs a descriptor.
    ProcessCalls.raiseDescriptorLimit()
    guard OriginSystem.startThread({ self.acceptConnections(server) }) else {
      throw FailedOperation("start a thread")
    }
  }

  private func acceptConnections(_ server: OriginServer) {
    while true {
      let connection = accept(descriptor, nil, nil)
      guard connection >= 0 else {
        // Descriptors or memory are short: the connections in the backlog wait until others end.
        if errno != EINTR, errno != ECONNABORTED { usleep(10_000) }
        continue
      }
      let isStarted = OriginSystem.startThread {
        Connection(socket: Socket(descriptor: connection), server: server).run()
      }
      if !isStarted { close(connection) }
    }
  }
}
