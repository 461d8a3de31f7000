import Glibc
import OriginContent

/// Executes plans on a socket; one per connection, because the buffer and the rate belong to it.
final class ResponseWriter {
  /// The number of bytes to generate and send at a time.
  ///
  /// The bytes fit into the second-level cache, from which the kernel then copies them.
  private static let pieceByteCount = 256 << 10

  private let socket: Socket
  private let server: OriginServer
  private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var bucket: TokenBucket?

  /// The rate that a script sets for all bytes; nil for none.
  private var pace: TokenBucket?

  /// The coded body that is being sent; its parts may be separate steps.
  private var coded: CodedStream?

  /// The status that the last plan sent; nil if it sent no head.
  private(set) var sentStatus: Int?

  /// The number of body bytes that the last plan sent, without framing.
  ///
  /// After a disconnection, this excludes the bytes that the client's kernel never received.
  private(set) var bodyByteCount: Int64 = 0

  init(socket: Socket, server: OriginServer) {
    self.socket = socket
    self.server = server
  }

  deinit { buffer.deallocate() }

  /// Sends a response, and reads the request's body where the plan requires it.
  ///
  /// A malformed chunked body ends the plan with a 400. Afterwards, the caller must close the
  /// socket if the plan requires that or is incomplete.
  func write(
    _ plan: ResponsePlan, source: ContentSource, body: RequestBody? = nil
  ) throws(Socket.Disconnected) {
    sentStatus = nil
    bodyByteCount = 0
    coded = nil
    pace = nil
    if plan.limitsReceiveBuffer { socket.limitReceiveBuffer() }
    do {
      try run(plan.steps, plan: plan, source: source, body: body)
    } catch {
      // Bytes in the kernel's send buffer were not transmitted.
      let lost = min(bodyByteCount, Int64(socket.unacknowledgedByteCount))
      count(-lost, plan)
      throw error
    }
  }

  /// Permits a waiting client to send its body (RFC 9110 §10.1.1).
  func writeContinue() throws(Socket.Disconnected) {
    try send(ResponseHead(status: 100).bytes)
  }

  private func run(
    _ steps: [ResponsePlan.Step], plan: ResponsePlan, source: ContentSource, body: RequestBody?
  ) throws(Socket.Disconnected) {
    for (index, step) in steps.enumerated() {
      switch step {
      case .receiveBody(let limit):
        guard let body else { continue }
        try body.receive(upTo: limit, keeping: plan.keptBodyByteCount, rate: plan.uploadRate)
        if body.isMalformed {
          let refusal = ResponsePlan.message(
            400, "malformed chunk\n", request: nil, now: OriginSystem.wallClockSeconds())
          return try run(refusal.steps, plan: refusal, source: .none, body: nil)
        }
      case .uploadAnswer(let answer):
        let steps = answer.steps(for: body?.received ?? ReceivedBody())
        try run(steps, plan: plan, source: source, body: nil)
      case .wait(let milliseconds):
        let deadline = OriginSystem.monotonicNanoseconds() + milliseconds * 1_000_000
        try socket.wait(until: deadline, hasUnread: body?.isWhole == false)
      case .stall: try socket.wait(until: nil, hasUnread: body?.isWhole == false)
      default:
        let next = index + 1 < steps.count ? steps[index + 1] : nil
        try run(step, next: next, plan: plan, source: source)
      }
    }
  }

  private func run(
    _ step: ResponsePlan.Step, next: ResponsePlan.Step?, plan: ResponsePlan,
    source: ContentSource
  ) throws(Socket.Disconnected) {
    switch step {
    case .wait, .stall, .receiveBody, .uploadAnswer: break  // Not steps of the response alone.
    case .interim(let head): try send(head.bytes)
    case .head(let head):
      sentStatus = head.status
      // Send one packet for head and body if no other step is between them.
      let isBodyNext = next.map { $0.bodyByteCount > 0 } ?? false
      try send(
        head.bytes, isMoreComing: isBodyNext && plan.rate == nil && plan.totalRate == nil)
    case .content(let range, let version):
      try sendPieces(range, plan: plan) { piece, offset in
        source.read(into: piece, version: version, offset: offset)
      }
    case .coded(let coding, let contentByteCount, let version, let part):
      var stream =
        coded ?? CodedStream(coding: coding, contentByteCount: contentByteCount)
      defer { coded = stream }
      try sendPieces(part, plan: plan) { piece, _ in
        stream.fill(piece) { source.read(into: $0, version: version, offset: $1) }
      }
    case .text(let bytes):
      reserveBuffer(bytes.count)
      var position = 0
      while position < bytes.count {
        let piece = bytes[position..<min(position + pieceByteCount(plan), bytes.count)]
        buffer.copyBytes(from: piece)
        try sendBody(piece.count, plan: plan)
        position += piece.count
      }
    case .lastChunk: try send(Array("0\r\n\r\n".utf8))
    case .raw(let bytes):
      sentStatus = sentStatus ?? ResponseHead.status(ofBytes: bytes)
      try send(bytes)
    case .rawContent(let range, let version):
      var unframed = plan
      unframed.isChunked = false
      try sendPieces(range, plan: unframed) { piece, offset in
        source.read(into: piece, version: version, offset: offset)
      }
    case .pace(let bytesPerSecond):
      pace = bytesPerSecond.map { TokenBucket(bytesPerSecond: $0) }
    case .close: break  // The connection ends, since the plan is not whole.
    case .reset: socket.prepareReset()
    }
  }

  /// Sends a range of bytes as body; `fill` makes each piece, and returns false if it cannot.
  private func sendPieces(
    _ range: Range<Int64>, plan: ResponsePlan,
    fill: (_ piece: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Bool
  ) throws(Socket.Disconnected) {
    reserveBuffer(Int(clamping: range.upperBound - range.lowerBound))
    var offset = range.lowerBound
    while offset < range.upperBound {
      let byteCount = Int(min(Int64(pieceByteCount(plan)), range.upperBound - offset))
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<byteCount])
      guard fill(piece, offset) else {
        // The file became shorter: an honest server can only cut the connection.
        throw Socket.Disconnected()
      }
      try sendBody(byteCount, plan: plan)
      offset += Int64(byteCount)
    }
  }

  /// Sends the first bytes of the buffer as body, at the plan's rate and in its framing.
  private func sendBody(_ byteCount: Int, plan: ResponsePlan) throws(Socket.Disconnected) {
    try waitForRate(byteCount, plan)
    if plan.isChunked {
      try send(Array("\(String(byteCount, radix: 16))\r\n".utf8), isMoreComing: true)
    }
    try transmit(
      UnsafeRawBufferPointer(rebasing: buffer[..<byteCount]), isMoreComing: plan.isChunked
    ) { sent in
      count(Int64(sent), plan)
    }
    if plan.isChunked { try send([0x0D, 0x0A]) }
  }

  private func waitForRate(_ byteCount: Int, _ plan: ResponsePlan) throws(Socket.Disconnected) {
    let now = OriginSystem.monotonicNanoseconds()
    var start = now
    if let rate = plan.rate {
      // The limit applies to the connection, so the bucket outlives a request.
      var current =
        bucket.flatMap { $0.bytesPerSecond == rate ? $0 : nil }
        ?? TokenBucket(bytesPerSecond: rate)
      start = current.reserve(byteCount, now: now)
      bucket = current
    }
    if let totalRate = plan.totalRate {
      start = max(start, server.reserve(byteCount, ofTotalRate: totalRate, now: now))
    }
    if start > now { try socket.wait(until: start) }
  }

  private func pieceByteCount(_ plan: ResponsePlan) -> Int {
    var byteCount = buffer.count
    for rate in [plan.rate, plan.totalRate].compactMap(\.self) {
      byteCount = min(byteCount, TokenBucket(bytesPerSecond: rate).pieceByteCount)
    }
    return byteCount
  }

  /// Makes room for a piece; small bodies on many connections must not use 256 KiB each.
  private func reserveBuffer(_ byteCount: Int) {
    let wanted = min(Self.pieceByteCount, (byteCount + 4095) & ~4095)
    guard wanted > buffer.count else { return }
    buffer.deallocate()
    buffer = .allocate(byteCount: wanted, alignment: 4096)
  }

  private func send(_ bytes: [UInt8], isMoreComing: Bool = false) throws(Socket.Disconnected) {
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(Socket.Disconnected) in
        try transmit(buffer, isMoreComing: isMoreComing)
      }
    }
    try result.get()
  }

  /// Sends bytes of any kind, at the pace that a script sets.
  private func transmit(
    _ bytes: UnsafeRawBufferPointer, isMoreComing: Bool, sent: (Int) -> Void = { _ in }
  ) throws(Socket.Disconnected) {
    guard var bucket = pace else {
      return try socket.send(bytes, isMoreComing: isMoreComing, sent: sent)
    }
    defer { pace = bucket }
    var position = 0
    while position < bytes.count {
      let end = min(position + bucket.pieceByteCount, bytes.count)
      let now = OriginSystem.monotonicNanoseconds()
      let start = bucket.reserve(end - position, now: now)
      if start > now { try socket.wait(until: start) }
      try socket.send(UnsafeRawBufferPointer(rebasing: bytes[position..<end]), sent: sent)
      position = end
    }
  }

  private func count(_ byteCount: Int64, _ plan: ResponsePlan) {
    bodyByteCount += byteCount
    if plan.isCounted { server.statistics.bodySent(byteCount) }
  }
}
