import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import SeededRandom
import Testing

/// Whatever head a server sends, bytes are accepted only as what the head proves them to be.
@Suite(.timeLimit(.minutes(10))) struct HeadFuzzTests {
  static let mutator = ByteMutator(
    dictionary: [
      "\r\n", "\n", "\r", " ", "\t", ":", ": ", "-", "/", "*", ",", "\"", "W/",
      "HTTP/1.1 206 x\r\n",
      "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "\r\n\r\n", "Content-Range: ",
      "Content-Length: ", "Content-Length: 1000\r\n", "Transfer-Encoding: chunked\r\n", "bytes ",
      "Content-Range: bytes 0-0/1\r\n", "9223372036854775807", "9223372036854775808", "-1", "0",
      "1152921504606846976", "\0", "\u{7F}", "é", "\u{FEFF}", "multipart/byteranges", "+", "0x10",
      "١", "\u{301}", "\u{200D}",
    ].map { Array($0.utf8) } + [[0xFF], [0xC2], [0x80]])

  @Test("Of 100,000 mutated heads, what is taken for bytes is exactly what the head says")
  func heads() {
    let campaign = FuzzCampaign(name: "heads", count: 100_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.2) { generator in
      let asked = Self.asked(using: &generator)
      var bytes = HeadGrammar.head(asked: asked, using: &generator)
      for _ in 0..<generator.pick([0, 0, 1, 1, 2, 4]) {
        Self.mutator.mutate(&bytes, using: &generator)
      }
      let lines = Self.lines(bytes)
      var parser = HeadParser()
      var response: HTTPResponse?
      var hasFailed = false
      for line in lines where !hasFailed {
        switch line.withUnsafeBytes({ parser.take($0) }) {
        case .more: break
        case .head(let head):
          if response != nil { return .broken("two heads\(Self.shown(bytes))") }
          response = head
        case .malformed, .tooLarge: hasFailed = true
        }
      }
      let oracle = HeadOracle(lines: lines)
      guard let response, !hasFailed || oracle != nil else {
        // A fault after the final head is in a trailer, which is not read.
        return oracle == nil ? .refused : .broken("refused\(Self.shown(bytes))")
      }
      guard let oracle else { return .broken("taken for a head\(Self.shown(bytes))") }
      guard response.status.code == oracle.status else {
        return .broken("status \(response.status.code)\(Self.shown(bytes))")
      }
      return Self.judge(response, by: oracle, asked: asked) { rule in
        "\(rule), asked for \(String(describing: asked))\(Self.shown(bytes))"
      }
    }
  }

  /// Compares the product's verdict with the oracle's.
  private static func judge(
    _ response: HTTPResponse, by oracle: HeadOracle, asked: ByteRange?,
    _ report: (String) -> String
  ) -> FuzzCampaign.Verdict {
    let verdict = ResponseVerdict(response, asked: asked)
    let part = oracle.storableRange(asked: asked)
    switch verdict {
    case .part(let version, let range):
      guard let part else { return .broken(report("a part of \(range)")) }
      guard part.range == range, part.completeLength == version.completeLength else {
        return .broken(report("\(range) of \(version), not \(part)"))
      }
      return .accepted
    case .whole(let version):
      guard case .some(let length) = oracle.storableWhole else {
        return .broken(report("the whole"))
      }
      guard length == version.completeLength else {
        return .broken(report("the whole of \(version), not of \(String(describing: length))"))
      }
      return .accepted
    case .unavailable(_, let delay):
      if let delay, !(.zero ... .seconds(86_400)).contains(delay) {
        return .broken(report("a delay of \(delay)"))
      }
      let fields = oracle.values("retry-after")
      if fields.count == 1, let digits = HeadOracle.cappedNumber(fields[0]),
        delay != .seconds(min(digits, 86_400))
      {
        return .broken(report("a delay of \(String(describing: delay))"))
      }
      let wait = RetryPolicy().delay(failures: 1, retryAfter: delay, random: 0.5)
      return wait <= .seconds(30) ? .refused : .broken(report("a wait of \(wait)"))
    case .notModified, .preconditionFailed, .unsatisfiable, .missing, .denied, .rejected,
      .invalid:
      if part != nil || oracle.storableWhole != nil {
        return .broken(report("\(verdict), though nothing is wrong"))
      }
      return .refused
    }
  }

  @Test(
    "Heads of any number of fields and folds end at the caps, and cost no more than their bytes")
  func items() {
    let campaign = FuzzCampaign(name: "many fields", count: 60)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.1) { generator in
      var parser = HeadParser()
      let fieldCount = generator.pick([1, 999, 1000, 1001, 5000, 65_600])
      let foldCount = generator.pick([0, 1, 900, 20_000])
      var lines = ["HTTP/1.1 200 OK\r\n"]
      if generator.isOnce(in: 2) {
        // Fields of an interim response do not belong to the final one.
        lines = ["HTTP/1.1 103 x\r\n"] + Array(repeating: "b:\n", count: 900) + ["\n"] + lines
      }
      lines += Array(repeating: "a:\n", count: fieldCount)
      lines += Array(repeating: " z\n", count: foldCount) + ["\n"]
      let isTooMuch = fieldCount > 1000 || lines.count > 2000
      let clock = ContinuousClock()
      let start = clock.now
      for line in lines.map({ Array($0.utf8) }) {
        switch line.withUnsafeBytes({ parser.take($0) }) {
        case .more: continue
        case .malformed: return .broken("malformed: \(fieldCount) fields, \(foldCount) folds")
        case .tooLarge:
          return isTooMuch
            ? .refused : .broken("too large: \(fieldCount) fields, \(foldCount) folds")
        case .head(let head):
          let value = head.headerFields.last?.value.utf8.count ?? 0
          guard head.headerFields.count == fieldCount, !isTooMuch,
            value == max(0, foldCount * 2 - 1)
          else { return .broken("\(head.headerFields.count) fields, \(value) bytes") }
          // Quadratic work takes seconds; this, a hundredth of one.
          return clock.now - start < .seconds(2) ? .accepted : .broken("\(clock.now - start)")
        }
      }
      return .broken("no head: \(fieldCount) fields, \(foldCount) folds")
    }
  }

  @Test("Heads of any length end at the cap of 256 KiB")
  func cap() {
    let campaign = FuzzCampaign(name: "long heads", count: 300)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.1) { generator in
      var parser = HeadParser()
      var sentByteCount = 0
      var line = Array("HTTP/1.1 200 OK\r\n".utf8)
      let lineByteCount = generator.pick([1000, 16_000, 102_400])
      let goal = Int.random(in: 1...(512 << 10), using: &generator)
      while true {
        sentByteCount += line.count
        switch line.withUnsafeBytes({ parser.take($0) }) {
        case .tooLarge:
          return sentByteCount > 256 << 10
            ? .refused : .broken("too large at \(sentByteCount) bytes")
        case .malformed: return .broken("malformed at \(sentByteCount) bytes")
        case .head:
          return sentByteCount <= 256 << 10
            ? .accepted : .broken("a head of \(sentByteCount) bytes")
        case .more: break
        }
        let name = Array("X-\(sentByteCount): ".utf8)
        let isLast = sentByteCount >= goal
        line = isLast ? [0x0D, 0x0A] : name + [UInt8](repeating: 0x61, count: lineByteCount)
      }
    }
  }

  /// A range to request, mostly one that a file of 5,000 bytes has.
  static func asked(using generator: inout SeededGenerator) -> ByteRange? {
    if generator.isOnce(in: 6) { return nil }
    let first =
      generator.isOnce(in: 8)
      ? min(max(0, generator.edgeNumber()), .maximumFileOffset)
      : Int64.random(in: 0..<4999, using: &generator)
    return ByteRange(offset: first, byteCount: generator.pick([1, 100, 1000, 4096, 5000]))
  }

  /// The lines in the form in which libcurl passes them: each with its ending.
  static func lines(_ bytes: [UInt8]) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    var start = 0
    for index in bytes.indices where bytes[index] == 0x0A {
      lines.append(Array(bytes[start...index]))
      start = index + 1
    }
    return start < bytes.count ? lines + [Array(bytes[start...])] : lines
  }

  private static func shown(_ bytes: [UInt8]) -> String {
    "\n\(String(decoding: bytes.prefix(2000), as: UTF8.self).debugDescription)"
  }
}
