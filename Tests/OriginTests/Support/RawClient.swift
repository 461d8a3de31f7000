import Glibc

/// A TCP client that sends raw bytes and returns the received ones.
///
/// No call takes longer than its limit: a receive that waits longer ends with ``Ending/silence``.
final class RawClient {
  struct Failure: Error {
    let operation: String
    let code = errno
  }

  /// How a reception ended.
  enum Ending: Equatable {
    /// The peer closed its side (FIN).
    case closed
    /// The peer aborted the connection (RST).
    case reset
    /// No byte arrived for the given time.
    case silence
    /// The requested number of bytes arrived.
    case complete
  }

  private let descriptor: Int32

  /// Connects to a port of this machine.
  init(port: UInt16) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw Failure(operation: "socket") }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let code = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0 else {
      let failure = Failure(operation: "connect")
      close(descriptor)
      throw failure
    }
  }

  deinit { close(descriptor) }

  func send(_ text: String) throws {
    let bytes = Array(text.utf8)
    guard Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
      throw Failure(operation: "send")
    }
  }

  /// Sends a GET.
  func get(_ target: String, fields: String = "") throws {
    try send("GET \(target) HTTP/1.1\r\nHost: origin:81\r\n\(fields)\r\n")
  }

  /// Receives until the connection ends, `limit` bytes have arrived, or no byte arrives in time.
  ///
  /// - Parameters:
  ///   - limit: the maximum number of bytes to receive.
  ///   - silence: the time limit without bytes, in milliseconds.
  /// - Returns: the bytes, and the reason that there are no more.
  func receive(
    limit: Int = 16 << 20, silence: Int32 = 10_000
  ) -> (bytes: [UInt8], ending: Ending) {
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    while bytes.count < limit {
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, silence) > 0 else { return (bytes, .silence) }
      let count = recv(descriptor, &piece, min(piece.count, limit - bytes.count), 0)
      if count == 0 { return (bytes, .closed) }
      if count < 0 { return (bytes, .reset) }
      bytes += piece[..<count]
    }
    return (bytes, .complete)
  }

  /// Sends a message and receives all bytes until the connection is closed.
  func exchange(_ message: String) throws -> String {
    try send(message)
    return String(decoding: receive().bytes, as: UTF8.self)
  }
}
