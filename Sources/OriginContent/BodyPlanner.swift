/// Plans a response with the resource's bytes: 200 or 206, framing, and the faults of both.
struct BodyPlanner {
  /// Separates the parts of a multipart body; deterministic like everything here.
  private static let boundary = "origin-7f4a7c15"

  /// Garbage after a body: no response begins like this.
  private static let extraBytes = [UInt8](repeating: UInt8(ascii: "#"), count: 64)

  let maker: PlanMaker
  let version: UInt64
  let validators: Validators
  let selection: RangeSelection
  /// The coding of the whole representation; nil for a selection of ranges.
  let coding: ContentCoding?
  let fault: Fault?

  private enum Framing {
    case length
    case chunked
    case untilClose
  }

  func plan() -> ResponsePlan {
    let fault = applicableFault
    let framing = self.framing(fault)
    var range = 0..<completeLength
    var isPart = false
    if case .part(let part) = selection, fault != .ignoreRange {
      range = part
      isPart = true
    }
    if fault == .earlierRange {
      let lowerBound = max(0, range.lowerBound - PlanMaker.earlierByteCount)
      range = lowerBound..<range.upperBound
    }
    var body: [ResponsePlan.Step] = [.content(range, version: version)]
    if let coding {
      let end = coding.codedByteCount(contentByteCount: completeLength)
      body = [.coded(coding, contentByteCount: completeLength, version: version, part: 0..<end)]
    }
    if fault == .empty206 { body = [] }
    if let parts = parts(range, fault) { body = multipart(parts) }
    let byteCount = body.reduce(0) { $0 + $1.bodyByteCount }

    let isMultipart = parts(range, fault) != nil
    var head = maker.baseHead(isPart || isMultipart ? 206 : 200)
    maker.add(validators, to: &head)
    if maker.honoursRanges, fault != .ignoreRange { head.add("Accept-Ranges", "bytes") }
    head.add(
      "Content-Type",
      isMultipart
        ? "multipart/byteranges; boundary=\(Self.boundary)" : contentType)
    if isPart { head.add("Content-Range", contentRange(range, fault)) }
    head.add("Content-Disposition", maker.parameters.contentDisposition)
    head.add("Content-Encoding", coding?.rawValue)
    if fault == .gzip { head.add("Content-Encoding", "gzip") }
    if framing == .length || fault == .lengthAndChunked {
      head.add("Content-Length", String(byteCount))
    }
    if framing == .chunked { head.add("Transfer-Encoding", "chunked") }
    if framing == .untilClose, maker.request.keepsConnection { head.add("Connection", "close") }
    if fault == .headerBomb { PlanMaker.addBomb(to: &head) }

    var plan = ResponsePlan(steps: [.head(head)])
    plan.isChunked = framing == .chunked
    plan.closesConnection =
      !maker.request.keepsConnection || framing == .untilClose || fault == .silentClose
    plan.fault = fault
    if maker.request.method == "GET" {
      if plan.isChunked { body.append(.lastChunk) }
      plan.steps += faulty(body, byteCount: byteCount, fault)
    }
    return plan
  }

  private var completeLength: Int64 { maker.resource.completeLength }

  private var contentType: String {
    maker.parameters.contentType ?? "application/octet-stream"
  }

  private func framing(_ fault: Fault?) -> Framing {
    if maker.parameters.isChunked || fault == .lengthAndChunked {
      // HTTP/1.0 knows no chunks (RFC 9112 §7).
      return maker.request.isHTTP11 ? .chunked : .untilClose
    }
    return maker.parameters.isCloseDelimited ? .untilClose : .length
  }

  /// The fault, unless this kind of response cannot have it.
  private var applicableFault: Fault? {
    guard let fault, !fault.needsUpload else { return nil }
    if fault.needsRange {
      guard case .part(let range) = selection else { return nil }
      if fault == .earlierRange, range.lowerBound == 0 { return nil }
    }
    if fault.needsBody, maker.request.method == "HEAD" || completeLength == 0 { return nil }
    return fault
  }

  private func contentRange(_ range: Range<Int64>, _ fault: Fault?) -> String? {
    switch fault {
    case .missingContentRange, .multipart: return nil
    case .wrongContentRange:
      // Valid and of the right length, but one byte off. A range that reaches the end can only
      // report a wrong complete length.
      if range.upperBound < completeLength { return field(range, shift: 1) }
      if range.lowerBound > 0 { return field(range, shift: -1) }
      return "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(completeLength + 1)"
    default: return field(range, shift: 0)
    }
  }

  private func field(_ range: Range<Int64>, shift: Int64) -> String {
    "bytes \(range.lowerBound + shift)-\(range.upperBound - 1 + shift)/\(completeLength)"
  }

  /// The ranges of the parts of a multipart body; nil if it is not multipart.
  private func parts(_ range: Range<Int64>, _ fault: Fault?) -> [Range<Int64>]? {
    if case .parts(let ranges) = selection { return ranges }
    return fault == .multipart ? [range] : nil
  }

  /// A body of the type multipart/byteranges (RFC 9110 §14.6).
  private func multipart(_ ranges: [Range<Int64>]) -> [ResponsePlan.Step] {
    var steps: [ResponsePlan.Step] = []
    for (index, range) in ranges.enumerated() {
      let part =
        (index == 0 ? "" : "\r\n") + "--\(Self.boundary)\r\nContent-Type: \(contentType)\r\n"
        + "Content-Range: \(field(range, shift: 0))\r\n\r\n"
      steps += [.text(Array(part.utf8)), .content(range, version: version)]
    }
    return steps + [.text(Array("\r\n--\(Self.boundary)--\r\n".utf8))]
  }

  private func faulty(
    _ body: [ResponsePlan.Step], byteCount: Int64, _ fault: Fault?
  ) -> [ResponsePlan.Step] {
    let place = min(maker.parameters.faultAt ?? byteCount / 2, byteCount)
    switch fault {
    case .truncate: return body.split(atBodyByte: place).before.withoutEnd + [.close]
    case .reset: return body.split(atBodyByte: place).before.withoutEnd + [.reset]
    case .shortBody: return body.split(atBodyByte: byteCount - 1).before.withoutEnd + [.close]
    case .stall:
      let (before, after) = body.split(atBodyByte: place)
      // At the very end of a chunked body, the stall comes before its last chunk.
      let end = before.filter { $0 == .lastChunk }
      return before.withoutEnd + [maker.stallStep] + end + after
    case .extraBytes: return body + [.raw(Self.extraBytes)]
    default: return body
    }
  }
}

extension [ResponsePlan.Step] {
  /// The steps without the end of a chunked body, which a truncated response never has.
  fileprivate var withoutEnd: Self { filter { $0 != .lastChunk } }
}
