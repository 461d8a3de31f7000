import Glibc
import OriginContent

/// Carries out plans on a socket; one per connection, which its buffer and its rate belong to.
final class ResponseWriter {
  /// What is generated and sent at a time: fits the second-level cache, so that the kernel's copy
  /// reads it from there.
  private static let pieceByteCount = 256 << 10

  private let socket: Socket
  private let server: OriginServer
  private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var bucket: TokenBucket?

  /// The status that the last plan sent; nil if it sent no head.
  private(set) var sentStatus: Int?

  /// The body bytes of the last plan that went out, without framing: after a disconnection without
  /// those that the client's kernel never took.
  private(set) var bodyByteCount: Int64 = 0

  init(socket: Socket, server: OriginServer) {
    self.socket = socket
    self.server = server
  }

  deinit { buffer.deallocate() }

  /// Sends a response.
  ///
  /// The socket is to be closed afterwards if the plan says so, or if it is not whole.
  func write(_ plan: ResponsePlan, source: ContentSource) throws(Socket.Disconnected) {
    sentStatus = nil
    bodyByteCount = 0
    do {
      for (index, step) in plan.steps.enumerated() {
        let next = index + 1 < plan.steps.count ? plan.steps[index + 1] : nil
        try run(step, next: next, plan: plan, source: source)
      }
    } catch {
      // What lies in the kernel's send buffer has not travelled.
      let lost = min(bodyByteCount, Int64(socket.unacknowledgedByteCount))
      count(-lost, plan)
      throw error
    }
  }

  /// Lets a client that waits for it send its body (RFC 9110 §10.1.1).
  func writeContinue() throws(Socket.Disconnected) {
    try send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
  }

  private func run(
    _ step: ResponsePlan.Step, next: ResponsePlan.Step?, plan: ResponsePlan,
    source: ContentSource
  ) throws(Socket.Disconnected) {
    switch step {
    case .wait(let milliseconds):
      try socket.wait(until: SystemCall.monotonicNanoseconds() + milliseconds * 1_000_000)
    case .stall: try socket.wait(until: nil)
    case .head(let head):
      sentStatus = head.status
      // One packet for head and body where nothing comes between them.
      let isBodyNext = next.map { $0.bodyByteCount > 0 } ?? false
      try send(
        head.bytes, isMoreComing: isBodyNext && plan.rate == nil && plan.totalRate == nil)
    case .content(let range, let version):
      try sendContent(range, version: version, plan: plan, source: source)
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
    case .raw(let bytes): try send(bytes)
    case .close: break  // The connection ends, since the plan is not whole.
    case .reset: socket.prepareReset()
    }
  }

  private func sendContent(
    _ range: Range<Int64>, version: UInt64, plan: ResponsePlan, source: ContentSource
  ) throws(Socket.Disconnected) {
    reserveBuffer(Int(clamping: range.upperBound - range.lowerBound))
    var offset = range.lowerBound
    while offset < range.upperBound {
      let byteCount = Int(min(Int64(pieceByteCount(plan)), range.upperBound - offset))
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<byteCount])
      guard source.read(into: piece, version: version, offset: offset) else {
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
    try socket.send(
      UnsafeRawBufferPointer(rebasing: buffer[..<byteCount]), isMoreComing: plan.isChunked
    ) { sent in
      count(Int64(sent), plan)
    }
    if plan.isChunked { try send([0x0D, 0x0A]) }
  }

  private func waitForRate(_ byteCount: Int, _ plan: ResponsePlan) throws(Socket.Disconnected) {
    let now = SystemCall.monotonicNanoseconds()
    var start = now
    if let rate = plan.rate {
      // The bucket stays over the requests of a connection: a cap of the line, not of a response.
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

  /// Makes room for a piece; small bodies on many connections must not take 256 KiB each.
  private func reserveBuffer(_ byteCount: Int) {
    let wanted = min(Self.pieceByteCount, (byteCount + 4095) & ~4095)
    guard wanted > buffer.count else { return }
    buffer.deallocate()
    buffer = .allocate(byteCount: wanted, alignment: 4096)
  }

  private func send(_ bytes: [UInt8], isMoreComing: Bool = false) throws(Socket.Disconnected) {
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(Socket.Disconnected) in
        try socket.send(buffer, isMoreComing: isMoreComing)
      }
    }
    try result.get()
  }

  private func count(_ byteCount: Int64, _ plan: ResponsePlan) {
    bodyByteCount += byteCount
    if plan.isCounted { server.statistics.bodySent(byteCount) }
  }
}
