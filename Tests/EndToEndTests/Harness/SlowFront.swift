import Foundation
import Glibc

/// A relay on the loopback interface that passes the bytes of a connection on only after a delay,
/// so that a TLS handshake through it takes that long.
///
/// `@unchecked Sendable`: everything is constant; threads share descriptors only.
final class SlowFront: @unchecked Sendable {
  let port: UInt16
  private let listener: CInt
  private let target: UInt16
  private let delay: Duration

  /// Listens at once.
  ///
  /// - Parameters:
  ///   - target: the server's port on the loopback interface.
  ///   - port: the port to listen at; nil for a free one.
  ///   - delay: how long each new connection stays silent.
  /// - Throws: `HarnessError` if it cannot listen.
  init(target: UInt16, port: UInt16? = nil, delay: Duration) throws {
    self.port = try port ?? FreePort.next()
    self.target = target
    self.delay = delay
    listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var on: CInt = 1
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
    let isListening = Self.withAddress(self.port) { [listener] in bind(listener, $0, $1) == 0 }
    guard isListening, listen(listener, 64) == 0 else {
      throw HarnessError("cannot listen at port \(self.port)")
    }
    let (listener, target, delay) = (listener, target, delay)
    Thread.detachNewThread {
      while case let client = accept(listener, nil, nil), client >= 0 {
        Thread.detachNewThread { Self.relay(client, to: target, after: delay) }
      }
    }
  }

  deinit {
    shutdown(listener, CInt(SHUT_RDWR))
    close(listener)
  }

  private static func withAddress<Result>(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  private static func relay(_ client: CInt, to target: UInt16, after delay: Duration) {
    usleep(UInt32(delay / .microseconds(1)))
    let server = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let isConnected = withAddress(target) { connect(server, $0, $1) == 0 }
    if isConnected {
      let back = Thread { copy(from: server, to: client) }
      back.start()
      copy(from: client, to: server)
      while !back.isFinished { usleep(10_000) }
    }
    close(server)
    close(client)
  }

  /// Copies until either side closes.
  private static func copy(from source: CInt, to destination: CInt) {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while case let count = recv(source, &buffer, buffer.count, 0), count > 0 {
      var sent = 0
      while sent < count {
        let part = buffer[sent..<count].withUnsafeBytes {
          send(destination, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
        }
        guard part > 0 else { break }
        sent += part
      }
      if sent < count { break }
    }
    shutdown(source, CInt(SHUT_RDWR))
    shutdown(destination, CInt(SHUT_RDWR))
  }
}
