import Foundation
import Glibc
import Synchronization

/// A server on the loopback interface that answers each request with raw bytes.
///
/// It then closes the connection. It serves one connection at a time.
final class RawServer: Sendable {
  let port: UInt16
  private let listener: CInt
  /// The answer for the path of a request, which is a number.
  private let answer: @Sendable (UInt64) -> [UInt8]
  private let isStopped = Atomic<Bool>(false)

  struct SocketError: Error {
    let errno: CInt
  }

  init(answer: @escaping @Sendable (UInt64) -> [UInt8]) throws {
    self.answer = answer
    listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { throw SocketError(errno: errno) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let code = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> CInt in
        if bind(listener, address, length) != 0 { return errno }
        if Glibc.listen(listener, 64) != 0 { return errno }
        return getsockname(listener, address, &length) == 0 ? 0 : errno
      }
    }
    guard code == 0 else {
      close(listener)
      throw SocketError(errno: code)
    }
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread { [self] in
      while !isStopped.load(ordering: .acquiring) {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { break }
        serve(connection)
        close(connection)
      }
      close(listener)
    }
  }

  /// Ends the server's thread.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    shutdown(listener, CInt(SHUT_RDWR))
  }

  private func serve(_ connection: CInt) {
    var timeout = timeval(tv_sec: 5, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(connection, SOL_SOCKET, option, &timeout, size)
    }
    var request: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4096)
    while request.firstRange(of: Array("\r\n\r\n".utf8)) == nil {
      let count = recv(connection, &piece, piece.count, 0)
      guard count > 0, request.count < 64 << 10 else { return }
      request += piece[..<count]
    }
    let words = request.split(separator: 0x20, maxSplits: 2)
    guard words.count == 3,
      let number = UInt64(String(decoding: words[1].dropFirst(), as: UTF8.self))
    else { return }
    var rest = answer(number)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, 0x4000) }
      // 0x4000 is MSG_NOSIGNAL: a client may have closed the connection.
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}
