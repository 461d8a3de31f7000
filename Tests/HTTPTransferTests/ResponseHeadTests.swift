import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The handling of the lines of a response's head.
  @Suite struct ResponseHeads {
    private let client = TransferClient()

    /// The record of a receiver for one response.
    private func exchange(_ steps: [ScriptedServer.Step]) async throws -> RecordingReceiver.Record {
      let server = try ScriptedServer { _ in steps }
      defer { server.stop() }
      return try await client.record(server.url("/"))
    }

    @Test("Status, fields and body arrive as they were sent, repeated fields in order")
    func plain() async throws {
      let record = try await exchange([
        .head(
          "HTTP/1.1 203 Odd \"reason\"", "Content-Length: 5", "X-A:  one\t ", "x-a: two",
          "X-Empty:", "ETag: \"é\""),
        .text("hello"),
      ])
      #expect(record.outcome == "finished")
      #expect(record.text == "hello")
      #expect(record.heads.map(\.status.code) == [203])
      let fields = try #require(record.heads.first).headerFields
      let name = try #require(HTTPField.Name("X-A"))
      #expect(fields[values: name] == ["one", "two"])
      #expect(fields[try #require(HTTPField.Name("X-Empty"))] == "")
      #expect(fields[.eTag] == "\"é\"")
      #expect(record.misplacedCallCount == 0)
    }

    @Test("Interim responses are skipped, with their fields")
    func interim() async throws {
      let record = try await exchange([
        .head("HTTP/1.1 100 Continue"),
        .head("HTTP/1.1 103 Early Hints", "Link: </a>", "Content-Length: 999"),
        .pause(milliseconds: 20),
        .head("HTTP/1.1 102 Processing"),
        .head("HTTP/1.1 200 OK", "Content-Length: 2"), .text("hi"),
      ])
      #expect(record.outcome == "finished")
      #expect(record.heads.map(\.status.code) == [200])
      #expect(record.heads.first?.headerFields.map(\.value) == ["2"])
      #expect(record.text == "hi")
    }

    @Test("A folded line continues the value before it")
    func folding() async throws {
      let record = try await exchange([
        .head(
          "HTTP/1.1 200 OK", "ETag: \"a", " b", "\t  c\"", "Content-Length: 0", "Server: s", " t")
      ])
      let fields = try #require(record.heads.first).headerFields
      #expect(fields[.eTag] == "\"a b c\"")
      #expect(fields[.server] == "s t")
      #expect(fields[.contentLength] == "0")
    }

    @Test("A field of an impossible name is left out, and the others stay")
    func nonFields() async throws {
      let record = try await exchange([
        .head(
          "HTTP/1.1 200 OK", "bad name: x", ": nameless", "ETag: \"a\"",
          "Content-Length: 0")
      ])
      #expect(record.outcome == "finished")
      #expect(record.heads.first?.headerFields.map(\.name) == [.eTag, .contentLength])
    }

    @Test("A line that is neither a field nor part of one fails the transfer")
    func lineWithoutColon() async throws {
      let record = try await exchange([
        .head("HTTP/1.1 200 OK", "no colon here", "Content-Length: 0")
      ])
      #expect(record.error?.code == .malformedResponse)
      #expect(record.heads.isEmpty)
    }

    @Test("Trailers without an end fail like a head without an end")
    func trailerBomb() async throws {
      let record = try await exchange([
        .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), .text("3\r\nabc\r\n0\r\n"),
        .text(String(repeating: "X-T: " + String(repeating: "x", count: 995) + "\r\n", count: 300)),
        .hold,
      ])
      #expect(record.error?.code == .headTooLarge)
      #expect(record.text == "abc")
    }

    @Test("A head that drips in is given up at its deadline, however slowly it comes")
    func slowHead() async throws {
      // Much longer than other tests can delay this one.
      let steps = ("HTTP/1.1 200 OK\r\nX-Slow: " + String(repeating: "x", count: 3000)).flatMap {
        [ScriptedServer.Step.text(String($0)), .pause(milliseconds: 100)]
      }
      let server = try ScriptedServer { _ in steps + [.hold] }
      defer { server.stop() }
      var request = ExchangeRequest(url: try RemoteURL(server.url("/")))
      request.headTimeout = .seconds(1)
      let start = ContinuousClock.now
      let record = await TransferClient().record(request)
      let duration = ContinuousClock.now - start
      #expect(record.error?.code == .timedOut)
      #expect((.milliseconds(950) ... .seconds(120)).contains(duration), "\(duration)")
    }

    @Test("The deadline of a head is none of the body")
    func slowBody() async throws {
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Content-Length: 2"), .text("a"), .pause(milliseconds: 1500),
          .text("b"),
        ]
      }
      defer { server.stop() }
      var request = ExchangeRequest(url: try RemoteURL(server.url("/")))
      request.headTimeout = .seconds(1)
      let record = await TransferClient().record(request)
      #expect(record.outcome == "finished")
      #expect(record.text == "ab")
    }

    @Test("Trailers are not taken for fields or for another head")
    func trailers() async throws {
      let record = try await exchange([
        .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"),
        .text("3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nETag: \"late\"\r\n\r\n"),
      ])
      #expect(record.outcome == "finished")
      #expect(record.text == "abcdefg")
      #expect(record.heads.count == 1)
      #expect(record.heads.first?.headerFields[.eTag] == nil)
    }

    @Test("A body without a length ends with the connection")
    func closeDelimited() async throws {
      let record = try await exchange([.head("HTTP/1.1 200 OK"), .text("all"), .close])
      #expect(record.outcome == "finished")
      #expect(record.text == "all")
    }

    @Test("A head of just under 256 KiB is taken whole")
    func largeHead() async throws {
      let lines = (0..<31).map { "X-Filler-\($0): " + String(repeating: "x", count: 8000) }
      let record = try await exchange([
        .text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"),
        .text(lines.map { $0 + "\r\n" }.joined() + "\r\n"), .text("hi"),
      ])
      #expect(record.outcome == "finished")
      #expect(record.heads.first?.headerFields.count == 32)
    }

    @Test("A head of 1,000 fields is taken, one of more is not", arguments: [1000, 1001, 65_600])
    func manyFields(count: Int) async throws {
      let record = try await exchange([
        .text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"),
        .text(String(repeating: "a:\n", count: count - 1) + "\r\n"), .text("hi"),
      ])
      if count <= 1000 {
        #expect(record.outcome == "finished")
        #expect(record.heads.first?.headerFields.count == count)
      } else {
        #expect(record.error?.code == .headTooLarge)
        #expect(record.error?.isTransient == false)
        #expect(record.heads.isEmpty)
      }
    }

    @Test(
      "A head of 2,000 lines, folded ones too, is taken, one of more is not",
      arguments: [1996, 1997, 80_000])
    func manyFolds(count: Int) async throws {
      // The other parts are the status, two fields and the end.
      let record = try await exchange([
        .text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n"),
        .text(String(repeating: " z\n", count: count) + "\r\n"), .text("hi"),
      ])
      if count <= 1996 {
        #expect(record.outcome == "finished")
        #expect(record.heads.first?.headerFields.first { $0.value.hasPrefix("y z z") } != nil)
      } else {
        #expect(record.error?.code == .headTooLarge)
        #expect(record.heads.isEmpty)
      }
    }

    @Test(
      "A transfer coding that was not requested is refused before libcurl decodes it",
      arguments: ["gzip", "gzip, chunked", "deflate", "Chunked"])
    func transferCodings(coding: String) async throws {
      let record = try await exchange([
        .text("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n"), .text("0\r\n\r\n"),
      ])
      if coding == "Chunked" {
        #expect(record.outcome == "finished")
      } else {
        #expect(record.error?.code == .malformedResponse)
        #expect(record.heads.isEmpty)
      }
    }

    @Test("The bytes of a field are handed over as they came, whether or not they are UTF-8")
    func bytes() async throws {
      let record = try await exchange([
        .send(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: \"v-".utf8) + [0x80, 0x22]),
        .text("\r\n\r\n"),
      ])
      let fields = try #require(record.heads.first).headerFields
      #expect(fields.bytes(of: .eTag) == Array("\"v-".utf8) + [0x80, 0x22])
      let version = ContentVersion(fields, completeLength: 0)
      #expect(version.entityTag?.bytes == Array("v-".utf8) + [0x80])
    }

    @Test("A tag whose bytes are not UTF-8 goes out as it came")
    func sentBytes() async throws {
      let bytes = Array("\"v-".utf8) + [0x80, 0x22]
      let tag = try #require(EntityTag(field: bytes))
      let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { server.stop() }
      var request = ExchangeRequest(url: try RemoteURL(server.url("/")))
      request.fields.append(tag.field(.ifNoneMatch))
      _ = await client.record(request)
      let head = try #require(server.requests.first).headBytes
      #expect(head.firstRange(of: bytes + [0x0d, 0x0a]) != nil)
    }

    @Test(
      "A head of more than 256 KiB fails, however it is spread",
      arguments: ["many lines", "short lines", "folded lines", "interim responses"])
    func headBomb(kind: String) async throws {
      let line = String(repeating: "x", count: 8000)
      let bomb =
        switch kind {
        case "many lines": (0..<40).map { "X-\($0): \(line)\r\n" }.joined()
        case "folded lines": "X-Folded: a\r\n" + String(repeating: " \(line)\r\n", count: 40)
        case "short lines": String(repeating: "A: b\r\n", count: 60_000)
        default: String(repeating: "HTTP/1.1 103 Hints\r\nLink: \(line)\r\n\r\n", count: 40)
        }
      let start = kind == "interim responses" ? "" : "HTTP/1.1 200 OK\r\n"
      let record = try await exchange([
        .text(start + bomb), .head("HTTP/1.1 200 OK", "Content-Length: 0"),
      ])
      #expect(record.error?.code == .headTooLarge)
      #expect(record.error?.isTransient == false)
      #expect(record.heads.isEmpty)
      #expect(record.completions.count == 1)
    }

    @Test("One line that is longer than libcurl takes fails in the same way")
    func longLine() async throws {
      let record = try await exchange([
        .text("HTTP/1.1 200 OK\r\nX-Long: " + String(repeating: "x", count: 150_000) + "\r\n\r\n")
      ])
      #expect(record.error?.code == .headTooLarge)
      #expect(record.heads.isEmpty)
    }

    @Test(
      "What does not begin with a status line is no response",
      arguments: [
        "hello world\r\n\r\nbody", "HTTP/1.1\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "Content-Length: 5\r\n\r\nhello",
        "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "SSH-2.0-OpenSSH\r\n",
      ])
    func noStatusLine(text: String) async throws {
      let record = try await exchange([.text(text), .close])
      #expect(record.error?.code == .malformedResponse)
      #expect(record.heads.isEmpty)
      #expect(record.body.isEmpty)
    }
  }
}
