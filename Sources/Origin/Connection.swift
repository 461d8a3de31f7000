import Glibc
import OriginContent

/// One client connection, which reads and answers requests in turn on its own thread.
final class Connection {
  /// The maximum size of a control message.
  private static let controlBodyLimit = 1 << 20

  private let socket: Socket
  private let server: OriginServer
  private let reader: RequestReader
  private let writer: ResponseWriter

  /// The number of this connection, once it has carried a request for a resource.
  private var number: Int64?

  /// Whether to read briefly, at the end, what the client still sends.
  private var drainsAtEnd = true

  init(socket: Socket, server: OriginServer) {
    self.socket = socket
    self.server = server
    reader = RequestReader(socket: socket)
    writer = ResponseWriter(socket: socket, server: server)
  }

  /// Serves the connection until it ends.
  func run() {
    do throws(Socket.Disconnected) {
      while try serveNext() {}
      endStatistics()
      socket.finish(isDraining: drainsAtEnd)
    } catch {
      endStatistics()
    }
  }

  private func endStatistics() {
    if number != nil { server.statistics.connectionEnded() }
  }

  /// Answers the next request; false if the connection must end.
  private func serveNext() throws(Socket.Disconnected) -> Bool {
    switch try reader.nextHead() {
    case .end: return false
    case .tooLargeHead:
      try refuse(431, "request head too large\n")
      return false
    case .head(let bytes):
      let request: RequestHead
      do {
        request = try RequestHead(parsing: bytes)
      } catch {
        try refuse(400, "\(error.description)\n")
        return false
      }
      let isControl = ControlResource(path: request.path) != nil
      return isControl ? try serveControl(request) : try serveResource(request)
    }
  }

  /// Answers an invalid request; the connection must be closed.
  private func refuse(_ status: Int, _ text: String) throws(Socket.Disconnected) {
    try writer.write(
      .message(status, text, request: nil, now: OriginSystem.wallClockSeconds()), source: .none)
  }

  private func serveControl(_ request: RequestHead) throws(Socket.Disconnected) -> Bool {
    let body = RequestBody(of: request, reader: reader, socket: socket)
    if request.expectsContinue { try writer.writeContinue() }
    try body.receive(upTo: Int64(Self.controlBodyLimit), keeping: Self.controlBodyLimit)
    guard body.isWhole else {
      try refuse(413, "a control message needs a body of at most 1 MiB\n")
      return false
    }
    let plan = server.controlPlan(request, body: body.received.kept)
    try writer.write(plan, source: .none)
    return !plan.closesConnection
  }

  private func serveResource(_ request: RequestHead) throws(Socket.Disconnected) -> Bool {
    let isFirst = number == nil
    let connectionNumber = number ?? server.statistics.connectionBegan()
    number = connectionNumber
    let requestNumber = server.statistics.requestBegan()
    let began = OriginSystem.monotonicNanoseconds()
    let (plan, source) = server.plan(request, isFirstOnConnection: isFirst)
    let body = RequestBody(of: request, reader: reader, socket: socket) { [server] byteCount in
      server.statistics.requestBodyReceived(byteCount)
    }
    drainsAtEnd = plan.drainsUnreadBody

    var isDisconnected = false
    do {
      try writer.write(plan, source: source, body: body)
    } catch {
      isDisconnected = true
    }
    server.log.append(
      RequestRecord(
        id: requestNumber, timeMilliseconds: server.milliseconds(at: began),
        durationMilliseconds: Double((OriginSystem.monotonicNanoseconds() - began) / 1000) / 1000,
        connection: connectionNumber, request: request, received: body.received,
        status: writer.sentStatus, bodyByteCount: writer.bodyByteCount, fault: plan.fault,
        ruleName: plan.ruleName,
        isComplete: !isDisconnected && plan.isWhole))
    server.statistics.requestEnded()
    // After a reset, close at once and without the steps of an orderly shutdown.
    if isDisconnected || plan.steps.last == .reset { throw Socket.Disconnected() }
    // Bytes after a body that was not read to its end do not form a request.
    return !plan.closesConnection && plan.isWhole && body.isWhole
  }
}
