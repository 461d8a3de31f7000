/// A response as a short program of steps, including faults.
///
/// The executor performs the steps on a socket and makes no decisions.
package struct ResponsePlan: Equatable, Sendable {
  package enum Step: Equatable, Sendable {
    /// Wait this long.
    case wait(milliseconds: Int64)
    /// Wait until the client disconnects.
    case stall
    /// A response with a status 1xx, before the final one.
    case interim(ResponseHead)
    case head(ResponseHead)
    /// Read the request's body to its end, or up to this many bytes in total.
    case receiveBody(limit: Int64?)
    /// A head and body that depend on the request's body, which an earlier step read.
    case uploadAnswer(UploadAnswer)
    /// Body: these bytes of a version of the resource.
    case content(Range<Int64>, version: UInt64)
    /// Body: a part of the coded form of a version of the resource, in bytes of that form.
    ///
    /// Parts follow each other without gaps.
    case coded(ContentCoding, contentByteCount: Int64, version: UInt64, part: Range<Int64>)
    /// Body: these bytes.
    case text([UInt8])
    /// The end of a chunked body.
    case lastChunk
    /// These bytes, outside any framing.
    case raw([UInt8])
    /// These bytes of a version of the resource, outside any framing.
    case rawContent(Range<Int64>, version: UInt64)
    /// Send all later bytes, including heads and framing, at this many bytes per second; nil for no
    /// limit.
    case pace(bytesPerSecond: Int64?)
    /// Close the connection, in the middle of a response.
    case close
    /// Abort the connection with a TCP RST, once the client has received what was sent so far.
    case reset

    /// The number of body bytes that the step sends.
    package var bodyByteCount: Int64 {
      switch self {
      case .content(let range, _), .coded(_, _, _, let range), .rawContent(let range, _):
        range.upperBound - range.lowerBound
      case .text(let bytes): Int64(bytes.count)
      default: 0
      }
    }

    /// Whether the response ends here incomplete.
    var isAbort: Bool { self == .close || self == .reset }

    /// Whether bytes of the request's body are read.
    var isReceive: Bool {
      if case .receiveBody = self { true } else { false }
    }

    /// Whether the head of the final response is sent.
    var isFinalHead: Bool {
      switch self {
      case .head, .uploadAnswer: true
      default: false
      }
    }
  }

  package var steps: [Step]

  /// Whether body steps are sent as chunks (RFC 9112 §7.1).
  package var isChunked = false

  /// Whether the connection ends after the last step.
  package var closesConnection = false

  /// The fault that the response has, nil for none.
  package var fault: Fault?

  /// The rule of a script that made the response, nil for none.
  package var ruleName: String?

  /// The cap of body bytes per second on the connection.
  package var rate: Int64?

  /// The cap of body bytes per second over all connections.
  package var totalRate: Int64?

  /// The cap of bytes per second that are read from the request's body.
  package var uploadRate: Int64?

  /// Whether the kernel receives little of the request's body ahead.
  ///
  /// The client then soon notices the speed of our reads.
  package var limitsReceiveBuffer = false

  /// How many bytes of the request's body are kept for an ``UploadAnswer``.
  package var keptBodyByteCount = 0

  /// Whether to read briefly what the client still sends before the connection is closed.
  package var drainsUnreadBody = true

  /// Whether the statistics count its body: false for control resources.
  package var isCounted = true

  package init(steps: [Step]) {
    self.steps = steps
  }

  /// The head that is sent, if any.
  package var head: ResponseHead? {
    for case .head(let head) in steps { return head }
    return nil
  }

  /// The number of body bytes that are sent if the client stays connected.
  package var bodyByteCount: Int64 { steps.reduce(0) { $0 + $1.bodyByteCount } }

  /// Whether the steps send the complete response.
  package var isWhole: Bool { !steps.contains { $0.isAbort } }

  /// Closes the connection after the response, and announces that in its head.
  mutating func announceClose() {
    closesConnection = true
    changeFinalHead { $0.set("Connection", "close") }
  }

  /// Changes the head of the final response at any position.
  mutating func changeFinalHead(_ change: (inout ResponseHead) -> Void) {
    for (index, step) in steps.enumerated() {
      switch step {
      case .head(var head):
        change(&head)
        steps[index] = .head(head)
      case .uploadAnswer(var answer):
        change(&answer.head)
        steps[index] = .uploadAnswer(answer)
      default: break
      }
    }
  }

  /// A complete text response, for messages of the origin itself.
  package static func message(
    _ status: Int, _ text: String, contentType: String = "text/plain; charset=utf-8",
    request: RequestHead?, fields: [(name: String, value: String)] = [], now: Int64,
    closesConnection: Bool = false
  ) -> ResponsePlan {
    let body = Array(text.utf8)
    let closes = closesConnection || !(request?.keepsConnection ?? false)
    var head = ResponseHead(status: status)
    head.add("Date", HTTPDate.field(seconds: now))
    for field in fields { head.add(field.name, field.value) }
    head.add("Content-Type", contentType)
    head.add("Content-Length", String(body.count))
    head.add("Connection", closes ? "close" : request?.isHTTP11 == false ? "keep-alive" : nil)
    var plan = ResponsePlan(steps: [.head(head)])
    if request?.method != "HEAD" { plan.steps.append(.text(body)) }
    plan.closesConnection = closes
    return plan
  }
}

extension [ResponsePlan.Step] {
  /// The steps that send the first `byteCount` body bytes, and the others.
  func split(atBodyByte byteCount: Int64) -> (before: Self, after: Self) {
    var before: Self = []
    var after: Self = []
    var remaining = byteCount
    for step in self {
      let count = step.bodyByteCount
      if after.isEmpty, remaining >= count {
        before.append(step)
        remaining -= count
      } else {
        switch step {
        case .content(let range, let version) where remaining > 0:
          let middle = range.lowerBound + remaining
          before.append(.content(range.lowerBound..<middle, version: version))
          after.append(.content(middle..<range.upperBound, version: version))
        case .coded(let coding, let count, let version, let part) where remaining > 0:
          let middle = part.lowerBound + remaining
          before.append(
            .coded(
              coding, contentByteCount: count, version: version, part: part.lowerBound..<middle))
          after.append(
            .coded(
              coding, contentByteCount: count, version: version, part: middle..<part.upperBound))
        case .text(let bytes) where remaining > 0:
          before.append(.text([UInt8](bytes[..<Int(remaining)])))
          after.append(.text([UInt8](bytes[Int(remaining)...])))
        default: after.append(step)
        }
        remaining = 0
      }
    }
    return (before, after)
  }
}
