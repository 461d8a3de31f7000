import Glibc
import OriginContent

/// One client connection: reads request heads and answers them in turn, on a thread of its own.
final class Connection {
  /// What a request head may take: more than any client sends in earnest.
  private static let headLimit = 64 << 10

  /// What a control message may take.
  private static let controlBodyLimit: Int64 = 1 << 20

  private let socket: Socket
  private let server: OriginServer
  private let writer: ResponseWriter

  /// Bytes received and not yet used.
  private var pending: [UInt8] = []

  /// The number of this connection, once it has carried a request for a resource.
  private var number: Int64?

  init(socket: Socket, server: OriginServer) {
    self.socket = socket
    self.server = server
    writer = ResponseWriter(socket: socket, server: server)
  }

  /// Serves the connection until it ends.
  func run() {
    do throws(Socket.Disconnected) {
      while let bytes = try readHead() {
        guard try serve(bytes) else { break }
      }
      endStatistics()
      socket.finish()
    } catch {
      endStatistics()
    }
  }

  private func endStatistics() {
    if number != nil { server.statistics.connectionEnded() }
  }

  /// The bytes of the next head without the empty line at its end; nil when the client is done.
  ///
  /// A head over the limit comes cut, which no parser takes.
  private func readHead() throws(Socket.Disconnected) -> ArraySlice<UInt8>? {
    var searched = 0
    while true {
      // Empty lines before a request are skipped (RFC 9112 §2.2).
      while searched == 0, pending.first == 0x0D || pending.first == 0x0A { pending.removeFirst() }
      if let end = Self.endOfHead(pending, from: searched) {
        let head = pending[..<end]
        pending.removeSubrange(..<(end + 4))
        return head
      }
      if pending.count > Self.headLimit {
        try writer.write(
          .message(
            431, "request head too large\n", request: nil, now: SystemCall.wallClockSeconds()),
          source: .none)
        return nil
      }
      searched = max(0, pending.count - 3)
      guard try receive() else { return nil }
    }
  }

  /// Where `\r\n\r\n` begins, at or after `start`.
  private static func endOfHead(_ bytes: [UInt8], from start: Int) -> Int? {
    guard bytes.count >= 4 else { return nil }
    return (start...(bytes.count - 4)).first { index in
      bytes[index] == 0x0D && bytes[index + 1] == 0x0A && bytes[index + 2] == 0x0D
        && bytes[index + 3] == 0x0A
    }
  }

  /// Receives some bytes into `pending`; false at the end of the stream.
  private func receive() throws(Socket.Disconnected) -> Bool {
    let result = withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 16) {
      buffer -> Result<Int, Socket.Disconnected> in
      Result { () throws(Socket.Disconnected) -> Int in
        let count = try socket.receive(into: buffer)
        pending += buffer[..<count]
        return count
      }
    }
    return try result.get() > 0
  }

  /// Answers one request; false if the connection is to end.
  private func serve(_ bytes: ArraySlice<UInt8>) throws(Socket.Disconnected) -> Bool {
    let request: RequestHead
    do {
      request = try RequestHead(parsing: bytes)
    } catch {
      try writer.write(
        .message(
          400, "\(error.description)\n", request: nil, now: SystemCall.wallClockSeconds()),
        source: .none)
      return false
    }
    if ControlResource(path: request.path) != nil { return try serveControl(request) }
    return try serveResource(request)
  }

  private func serveControl(_ request: RequestHead) throws(Socket.Disconnected) -> Bool {
    var body: [UInt8] = []
    if request.hasBody {
      guard let byteCount = request.contentLength, byteCount <= Self.controlBodyLimit else {
        try writer.write(
          .message(
            413, "a control message needs a Content-Length of at most 1 MiB\n", request: nil,
            now: SystemCall.wallClockSeconds()), source: .none)
        return false
      }
      if request.fields["expect"]?.lowercased() == "100-continue" { try writer.writeContinue() }
      while pending.count < byteCount {
        guard try receive() else { return false }
      }
      body = Array(pending[..<Int(byteCount)])
      pending.removeSubrange(..<Int(byteCount))
    }
    let plan = server.controlPlan(request, body: body)
    try writer.write(plan, source: .none)
    return !plan.closesConnection
  }

  private func serveResource(_ request: RequestHead) throws(Socket.Disconnected) -> Bool {
    let isFirst = number == nil
    let connectionNumber = number ?? server.statistics.connectionBegan()
    number = connectionNumber
    let requestNumber = server.statistics.requestBegan()
    let began = SystemCall.monotonicNanoseconds()
    let (plan, source) = server.plan(request, isFirstOnConnection: isFirst)

    var isDisconnected = false
    do {
      try writer.write(plan, source: source)
    } catch {
      isDisconnected = true
    }
    server.log.append(
      RequestRecord(
        id: requestNumber, timeMilliseconds: server.milliseconds(at: began),
        durationMilliseconds: Double((SystemCall.monotonicNanoseconds() - began) / 1000) / 1000,
        connection: connectionNumber, request: request, status: writer.sentStatus,
        bodyByteCount: writer.bodyByteCount, fault: plan.fault,
        isComplete: !isDisconnected && plan.isWhole))
    server.statistics.requestEnded()
    // After a reset the close must come at once and without the courtesies of an orderly end.
    if isDisconnected || plan.steps.last == .reset { throw Socket.Disconnected() }
    // What follows a request with a body is not a request.
    return !plan.closesConnection && plan.isWhole && !request.hasBody
  }
}
