import Foundation
import Synchronization

/// A server on loopback that answers each request with a script.
///
/// A script consists of bytes, pauses, and ways to end a connection. Of HTTP, the server knows only
/// where a request's head ends, and how long its body is.
final class ScriptedServer: Sendable {
  /// A step of the answer to a request.
  enum Step: Sendable {
    case send([UInt8])
    case pause(milliseconds: UInt32)
    /// Continues when the gate is open.
    case wait(for: Gate)
    /// Sends the bytes, 1 KiB every 50 ms until the gate is open, and then the rest.
    case trickle([UInt8], until: Gate)
    /// Reads the rest of the request's body.
    case receiveBody
    /// Closes the connection in order, as after the end of a body.
    ///
    /// If the client has sent bytes that were not read, the kernel sends RST, which may destroy the
    /// answer.
    case close
    /// Ends the answer, and closes the connection when the client has.
    case finish
    /// Ends the connection with RST.
    case reset
    /// Sends no bytes until the client disconnects.
    case hold

    /// Sends lines of text with the line endings of HTTP.
    static func head(_ lines: String...) -> Step {
      .send(Array((lines + ["", ""]).joined(separator: "\r\n").utf8))
    }

    static func text(_ text: String) -> Step { .send(Array(text.utf8)) }
  }

  /// The answer `200` with a body and its length.
  static func ok(_ body: String) -> [Step] {
    [.head("HTTP/1.1 200 OK", "Content-Length: \(body.utf8.count)"), .text(body)]
  }

  /// A redirect with an empty body.
  static func redirect(_ status: Int = 302, to location: String) -> [Step] {
    [.head("HTTP/1.1 \(status) Moved", "Location: \(location)", "Content-Length: 0")]
  }

  let port: UInt16
  private let listener: CInt
  private let bodyLimit: Int
  private let answer: @Sendable (ReceivedRequest) -> [Step]
  private let state = Mutex(State())

  private struct State {
    var requests: [ReceivedRequest] = []
    var connectionCount = 0
    var openConnections: Set<CInt> = []
    var maximumOpenCount = 0
    var sentByteCount = 0
    var isStopped = false
  }

  struct SocketError: Error {
    let errno: CInt
  }

  /// Starts a server that listens.
  ///
  /// - Parameters:
  ///   - bodyLimit: how many bytes of a request's body are read before it is answered.
  ///   - answer: the script for a request, which has the part of its body that was read.
  /// - Throws: if no port is available.
  init(
    bodyLimit: Int = .max,
    answer: @escaping @Sendable (ReceivedRequest) -> [Step]
  ) throws {
    self.bodyLimit = bodyLimit
    self.answer = answer
    (listener, port) = try Self.bind(accepting: true)
    let server = listener
    // The thread does not keep the server alive after the test: see `stop`.
    Thread.detachNewThread { [weak self] in
      while true {
        let connection = accept(server, nil, nil)
        guard connection >= 0, let self, let number = register(connection) else {
          if connection >= 0 { close(connection) }
          break
        }
        Thread.detachNewThread { self.serve(connection, number: number) }
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
      for connection in state.openConnections { shutdown(connection, CInt(SHUT_RDWR)) }
      shutdown(listener, CInt(SHUT_RDWR))
    }
  }

  // MARK: What it saw

  /// The requests so far, in the order in which their heads were complete.
  ///
  /// A request has its body once that has been read.
  var requests: [ReceivedRequest] { state.withLock { $0.requests } }

  /// The connections accepted so far.
  var connectionCount: Int { state.withLock { $0.connectionCount } }

  /// The largest number of connections that were open at a time.
  var maximumOpenCount: Int { state.withLock { $0.maximumOpenCount } }

  /// The connections that are open now.
  var openCount: Int { state.withLock { $0.openConnections.count } }

  /// The number of bytes that the kernel has accepted for the clients so far.
  var sentByteCount: Int { state.withLock { $0.sentByteCount } }

  /// Returns when `count` requests have arrived.
  func waitForRequests(_ count: Int) async throws {
    while requests.count < count { try await Task.sleep(for: .milliseconds(2)) }
  }

  /// The URL of `path` on this server, with `userInfo` and `@` if that is not empty.
  func url(_ path: String, userInfo: String = "") -> String {
    "http://\(userInfo)127.0.0.1:\(port)\(path)"
  }

  // MARK: Connections

  /// Binds a socket to a new port on loopback.
  ///
  /// - Parameter accepting: whether it listens; if not, it refuses connections and keeps the port
  ///   from other servers.
  /// - Returns: the socket, which the caller closes, and its port.
  /// - Throws: if no port is available.
  static func bind(accepting: Bool) throws -> (CInt, UInt16) {
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { throw SocketError(errno: errno) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> CInt in
        if Glibc.bind(listener, address, length) != 0 { return errno }
        if accepting, Glibc.listen(listener, 512) != 0 { return errno }
        return getsockname(listener, address, &length) == 0 ? 0 : errno
      }
    }
    guard code == 0 else {
      close(listener)
      throw SocketError(errno: code)
    }
    return (listener, UInt16(bigEndian: address.sin_port))
  }

  /// Registers a connection; nil once the server has stopped.
  private func register(_ connection: CInt) -> Int? {
    state.withLock { state in
      guard !state.isStopped else { return nil }
      state.connectionCount += 1
      state.openConnections.insert(connection)
      state.maximumOpenCount = max(state.maximumOpenCount, state.openConnections.count)
      return state.connectionCount
    }
  }

  private func serve(_ connection: CInt, number: Int) {
    defer {
      state.withLock { _ = $0.openConnections.remove(connection) }
      close(connection)
    }
    var buffered: [UInt8] = []
    while let head = receiveHead(connection, &buffered) {
      guard var request = ReceivedRequest(head: head, connection: number) else { return }
      let index = state.withLock { state in
        state.requests.append(request)
        return state.requests.count - 1
      }
      let isComplete = receiveBody(
        connection, &buffered, of: &request, index, upTo: bodyLimit)
      guard isComplete else { return }
      for step in answer(request) {
        if case .receiveBody = step {
          guard receiveBody(connection, &buffered, of: &request, index, upTo: .max) else { return }
        } else {
          guard perform(step, connection) else { return }
        }
      }
    }
  }

  /// Reads `limit` bytes of a request's body; false if the connection ends before that.
  private func receiveBody(
    _ connection: CInt, _ buffered: inout [UInt8], of request: inout ReceivedRequest,
    _ index: Int, upTo limit: Int
  ) -> Bool {
    let wanted = min(limit, request.contentLength)
    defer { state.withLock { $0.requests[index].body = request.body } }
    if wanted > 0, request.body.isEmpty, request["expect"] == ["100-continue"] {
      guard send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), connection) else { return false }
    }
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while request.body.count < wanted {
      if buffered.isEmpty {
        let count = recv(connection, &chunk, min(chunk.count, wanted - request.body.count), 0)
        guard count > 0 else { return false }
        request.body += chunk[..<count]
      } else {
        let count = min(buffered.count, wanted - request.body.count)
        request.body += buffered[..<count]
        buffered.removeFirst(count)
      }
    }
    return true
  }

  /// Executes one step; false if the connection has ended.
  private func perform(_ step: Step, _ connection: CInt) -> Bool {
    switch step {
    case .send(let bytes): return send(bytes, connection)
    case .pause(let milliseconds):
      usleep(milliseconds * 1000)
      return true
    case .wait(let gate):
      gate.wait()
      return true
    case .trickle(let bytes, let gate):
      var rest = bytes[...]
      while !rest.isEmpty, !gate.isOpen {
        guard send(Array(rest.prefix(1 << 10)), connection) else { return false }
        rest = rest.dropFirst(1 << 10)
        usleep(50_000)
      }
      return send(Array(rest), connection)
    case .receiveBody: return true
    case .close: return false
    case .finish:
      shutdown(connection, CInt(SHUT_WR))
      var chunk = [UInt8](repeating: 0, count: 64 << 10)
      while recv(connection, &chunk, chunk.count, 0) > 0 {}
      return false
    case .reset:
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(
        connection, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
      return false
    case .hold:
      var byte: UInt8 = 0
      while recv(connection, &byte, 1, 0) > 0 {}
      return false
    }
  }

  private func send(_ bytes: [UInt8], _ connection: CInt) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest)
        let count = Glibc.send(
          connection, part.baseAddress, part.count, CInt(MSG_NOSIGNAL))
        guard count > 0 else { return false }
        state.withLock { $0.sentByteCount += count }
        rest = rest.dropFirst(count)
      }
      return true
    }
  }

  /// The bytes up to the next blank line; nil at the connection's end.
  private func receiveHead(_ connection: CInt, _ buffered: inout [UInt8]) -> [UInt8]? {
    let end = Array("\r\n\r\n".utf8)
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      if let range = buffered.firstRange(of: end) {
        let head = Array(buffered[..<range.lowerBound])
        buffered.removeSubrange(..<range.upperBound)
        return head
      }
      let count = recv(connection, &chunk, chunk.count, 0)
      guard count > 0 else { return nil }
      buffered += chunk[..<count]
    }
  }
}
