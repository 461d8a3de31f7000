import Foundation
import Synchronization

/// A server on loopback that answers `GET` requests for files, with ranges and entity tags.
final class RangeServer: Sendable {
  /// The content at a path.
  enum Content: Sendable {
    case bytes([UInt8])
    case page(String)
    /// An error without a body.
    case status(Int)
    /// No answer until the client closes the connection.
    case silence
  }

  struct SocketError: Error {
    let errno: CInt
  }

  private struct State {
    var targets: [String] = []
    var connections: Set<CInt> = []
    var isStopped = false
  }

  let port: UInt16
  private let listener: CInt
  private let contents: [String: Content]
  private let state = Mutex(State())

  /// Starts a server; `contents` are by path, with a leading slash.
  init(_ contents: [String: Content]) throws {
    self.contents = contents
    (listener, port) = try Self.listen()
    let server = listener
    Thread.detachNewThread { [weak self] in
      while true {
        let connection = accept(server, nil, nil)
        guard connection >= 0, let self, register(connection) else {
          if connection >= 0 { close(connection) }
          break
        }
        Thread.detachNewThread { self.serve(connection) }
      }
      close(server)
    }
  }

  deinit { stop() }

  /// Ends every connection and the listener.
  func stop() {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.isStopped = true
      for connection in state.connections { shutdown(connection, CInt(SHUT_RDWR)) }
      shutdown(listener, CInt(SHUT_RDWR))
    }
  }

  /// The paths of the requests so far.
  var targets: [String] { state.withLock { $0.targets } }

  func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

  private static func listen() throws -> (CInt, UInt16) {
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { throw SocketError(errno: errno) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> CInt in
        if Glibc.bind(listener, address, length) != 0 { return errno }
        if Glibc.listen(listener, 64) != 0 { return errno }
        return getsockname(listener, address, &length) == 0 ? 0 : errno
      }
    }
    guard code == 0 else {
      close(listener)
      throw SocketError(errno: code)
    }
    return (listener, UInt16(bigEndian: address.sin_port))
  }

  private func register(_ connection: CInt) -> Bool {
    state.withLock { state in
      guard !state.isStopped else { return false }
      state.connections.insert(connection)
      return true
    }
  }

  private func serve(_ connection: CInt) {
    defer {
      state.withLock { _ = $0.connections.remove(connection) }
      close(connection)
    }
    while let lines = receiveHead(connection) {
      let words = lines.first?.split(separator: " ") ?? []
      guard words.count == 3 else { return }
      let target = String(words[1])
      state.withLock { $0.targets.append(target) }
      let answer: [UInt8]
      switch contents[target] {
      case nil: answer = Self.answer("404 Not Found", [], [])
      case .silence:
        var byte: UInt8 = 0
        while recv(connection, &byte, 1, 0) > 0 {}
        return
      case .status(let status): answer = Self.answer("\(status) Refused", [], [])
      case .page(let text):
        answer = Self.answer("200 OK", ["Content-Type: text/html"], Array(text.utf8))
      case .bytes(let bytes): answer = Self.answer(bytes, range: Self.range(in: lines))
      }
      guard send(answer, connection) else { return }
    }
  }

  /// The first and last requested offset.
  private static func range(in lines: [String]) -> (first: Int, last: Int?)? {
    let prefix = "range: bytes="
    guard let line = lines.first(where: { $0.lowercased().hasPrefix(prefix) }) else { return nil }
    let ends = line.dropFirst(prefix.count).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Int(ends[0]) else { return nil }
    return (first, Int(ends[1]))
  }

  private static func answer(_ bytes: [UInt8], range: (first: Int, last: Int?)?) -> [UInt8] {
    let tag = "ETag: \"v1\""
    guard let range else { return answer("200 OK", [tag], bytes) }
    guard range.first < bytes.count else {
      return answer("416 Range Not Satisfiable", ["Content-Range: bytes */\(bytes.count)"], [])
    }
    let end = min(bytes.count, (range.last ?? bytes.count - 1) + 1)
    let field = "Content-Range: bytes \(range.first)-\(end - 1)/\(bytes.count)"
    return answer("206 Partial Content", [tag, field], Array(bytes[range.first..<end]))
  }

  private static func answer(_ status: String, _ fields: [String], _ body: [UInt8]) -> [UInt8] {
    let lines = ["HTTP/1.1 \(status)"] + fields + ["Content-Length: \(body.count)", "", ""]
    return Array(lines.joined(separator: "\r\n").utf8) + body
  }

  private func send(_ bytes: [UInt8], _ connection: CInt) -> Bool {
    var done = 0
    while done < bytes.count {
      let count = bytes[done...].withUnsafeBytes {
        Glibc.send(connection, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      done += count
    }
    return true
  }

  /// The lines of the next request's head; nil at the end of the connection.
  private func receiveHead(_ connection: CInt) -> [String]? {
    var head: [UInt8] = []
    var byte: UInt8 = 0
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      guard recv(connection, &byte, 1, 0) == 1 else { return nil }
      head.append(byte)
    }
    return String(decoding: head, as: UTF8.self).split(separator: "\r\n").map(String.init)
  }
}
