import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import SeededRandom
import Testing

/// Raw bytes over a socket: an exchange always ends, in order, with its own bytes.
@Suite(.timeLimit(.minutes(10))) struct ClientFuzzTests {
  /// The request and the response of a seed.
  private struct Exchange {
    let asked: ByteRange?
    var response: [UInt8]

    init(seed: UInt64) {
      var generator = SeededGenerator(seed: seed)
      asked = HeadFuzzTests.asked(using: &generator)
      response = HeadGrammar.head(asked: asked, using: &generator)
      let count = generator.pick([0, 1, 999, 1000, 1001, 5000, 40_000])
      let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
      if generator.isOnce(in: 4) {
        // Chunks of the body, with valid framing until they are mutated.
        for start in stride(from: 0, to: count, by: 1000) {
          let piece = body[start..<min(count, start + 1000)]
          response += Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10]
        }
        response += Array("0\r\n\r\n".utf8)
      } else {
        response += body
      }
      for _ in 0..<generator.pick([0, 0, 1, 2, 4]) {
        HeadFuzzTests.mutator.mutate(&response, using: &generator)
      }
    }
  }

  /// libcurl 7.88.1 keeps a pointer to the last header of a transfer for the next one of the easy
  /// handle.
  ///
  /// A line that begins with a blank then makes it use freed memory.
  @Test(
    "A head that begins with a folded line, after another exchange or a redirect, does no harm",
    arguments: ["HTTP/1.1 200 OK", "HTTP/1.1 302 Found\r\nLocation: /1"])
  func foldedFirstLine(first: String) throws {
    let note = CrashNote("a folded first line")
    defer { note.clear() }
    let server = try RawServer { number in
      let fields = number == 0 ? "\(first)\r\nX-A: b\r\n" : "HTTP/1.1 200 OK\r\n folded: x\r\n"
      return Array((fields + "Content-Length: 0\r\n\r\n").utf8)
    }
    defer { server.stop() }
    let client = ExchangeClient()
    for round in 0..<200 {
      note.set(seed: UInt64(round))
      for number in 0..<2 {
        let tape = ExchangeTape()
        let url = try RemoteURL("http://127.0.0.1:\(server.port)/\(number)")
        client.start(ExchangeRequest(url: url), receiver: tape)
        let record = try #require(tape.record(within: 20))
        #expect(record.completions.count == 1)
        // A client may refuse the folded line; it must see the plain head.
        let headCount = first.contains("302") || number == 1 ? 0...1 : 1...1
        #expect(headCount.contains(record.heads.count))
      }
    }
  }

  @Test("Of 3,000 mutated responses, each ends once, in order, with no byte that was not sent")
  func responses() throws {
    let server = try RawServer { Exchange(seed: $0).response }
    defer { server.stop() }
    let client = ExchangeClient()
    let campaign = FuzzCampaign(name: "responses", count: 3000)
    campaign.run(minimumAccepted: 0.2, minimumRefused: 0.1) { generator in
      let seed = generator.next()
      let exchange = Exchange(seed: seed)
      let url = try RemoteURL("http://127.0.0.1:\(server.port)/\(seed)")
      let tape = ExchangeTape()
      var request = ExchangeRequest(url: url, range: exchange.asked, maximumRedirects: 2)
      request.stallTimeout = .seconds(5)
      // No response delays the following ones.
      request.retryAfterCeiling = .zero
      client.start(request, receiver: tape)
      guard let record = tape.record(within: 20) else { return .broken("no end") }
      if record.completions.count != 1 { return .broken("\(record.completions.count) ends") }
      if let rule = record.brokenOrder {
        let sent = String(decoding: exchange.response.prefix(600), as: UTF8.self)
        return .broken("\(rule) after \(sent.debugDescription)")
      }
      if record.heads.count > 1 { return .broken("\(record.heads.count) heads") }
      let fields = record.heads.first?.headerFields ?? HTTPFields()
      if fields[.transferEncoding] == nil, !record.body.isEmpty,
        exchange.response.firstRange(of: record.body) == nil
      {
        return .broken("\(record.body.count) bytes that were not sent like this")
      }
      guard let head = record.heads.first, case .finished = record.completions[0] else {
        return .refused
      }
      // The length in the verdict is the one that the exchange has kept.
      if case .part(_, let range) = ResponseVerdict(head, asked: exchange.asked),
        fields[.transferEncoding] == nil, fields[.contentLength] != nil,
        Int64(record.body.count) != range.byteCount
      {
        return .broken("\(record.body.count) bytes for \(range)")
      }
      return .accepted
    }
  }
}
