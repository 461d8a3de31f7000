import OriginContent

/// The body of one request, read as far as a plan requires, counted and hashed, but not stored.
final class RequestBody {
  /// The number of bytes to receive at a time: a few of the largest packets of loopback.
  private static let pieceByteCount = 256 << 10

  /// The interval of checks for a disconnected client during slow reads, in nanoseconds.
  private static let lookInterval: Int64 = 100_000_000

  private let framing: RequestHead.BodyFraming
  private let reader: RequestReader
  private let socket: Socket
  private let counted: (Int64) -> Void
  private var decoder = ChunkedDecoder()
  private var bucket: TokenBucket?

  /// The time of the last check for a disconnected client, in nanoseconds of the monotonic clock.
  private var lastLook: Int64 = 0

  private(set) var received = ReceivedBody()

  /// Whether the chunks were malformed; no more bytes can then be read.
  private(set) var isMalformed = false

  /// `counted` is called with each run of body bytes.
  init(
    of request: RequestHead, reader: RequestReader, socket: Socket,
    counted: @escaping (Int64) -> Void = { _ in }
  ) {
    framing = request.bodyFraming
    self.reader = reader
    self.socket = socket
    self.counted = counted
  }

  /// Whether the body was read to its end, so another request can follow.
  var isWhole: Bool {
    switch framing {
    case .length(let length): received.byteCount == length
    case .chunked: decoder.isAtEnd
    case .unknown: false
    }
  }

  /// Reads to the end of the body, or until `limit` bytes of it have been read in all.
  ///
  /// - Parameters:
  ///   - limit: in bytes since the start of the body; nil for none.
  ///   - keptByteCount: how many of the first bytes are kept.
  ///   - rate: the cap of bytes per second; nil for none.
  /// - Throws: if the client disconnects first.
  func receive(
    upTo limit: Int64?, keeping keptByteCount: Int = 0, rate: Int64? = nil
  ) throws(Socket.Disconnected) {
    var pieceByteCount = Self.pieceByteCount
    if let rate {
      let bucket = bucket ?? TokenBucket(bytesPerSecond: rate)
      self.bucket = bucket
      pieceByteCount = bucket.pieceByteCount
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: pieceByteCount, alignment: 4096)
    defer { buffer.deallocate() }
    while !isWhole, !isMalformed, framing != .unknown {
      var byteCount = Int64(buffer.count)
      // Read no more than needed: N bytes of chunks hold at most N bytes of the body.
      if let limit { byteCount = min(byteCount, limit - received.byteCount) }
      if case .length(let length) = framing {
        byteCount = min(byteCount, length - received.byteCount)
      }
      guard byteCount > 0 else { return }
      let count = try reader.read(
        into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(byteCount)]))
      guard count > 0 else { throw Socket.Disconnected() }
      take(UnsafeRawBufferPointer(rebasing: buffer[..<count]), keeping: keptByteCount)
      try waitForRate(count)
    }
  }

  /// Waits until the rate allows the bytes that were read.
  private func waitForRate(_ byteCount: Int) throws(Socket.Disconnected) {
    guard var current = bucket else { return }
    let now = OriginSystem.monotonicNanoseconds()
    let time = current.reserve(byteCount, now: now)
    bucket = current
    guard time > now else { return }
    // Not every time: to read the kernel's table costs more than to wait for a small piece.
    let looksForPeer = now - lastLook >= Self.lookInterval
    if looksForPeer { lastLook = now }
    try socket.wait(until: time, hasUnread: looksForPeer && !isWhole)
  }

  private func take(_ bytes: UnsafeRawBufferPointer, keeping keptByteCount: Int) {
    guard framing == .chunked else {
      append(bytes, keeping: keptByteCount)
      return
    }
    do {
      let used = try decoder.decode(bytes) { append($0, keeping: keptByteCount) }
      reader.unread(UnsafeRawBufferPointer(rebasing: bytes[used...]))
    } catch {
      isMalformed = true
    }
  }

  private func append(_ bytes: UnsafeRawBufferPointer, keeping keptByteCount: Int) {
    received.append(bytes, keeping: keptByteCount)
    counted(Int64(bytes.count))
  }
}
