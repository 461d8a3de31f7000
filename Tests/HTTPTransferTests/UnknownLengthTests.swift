import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Responses of undeclared length.
  ///
  /// Bytes are delivered, no length is invented, and the sums are right at the end.
  @Suite struct UnknownLength {
    private let client = TransferClient()

    /// One of the bodies below, as a chunk of the chunked coding.
    private static func chunk(_ text: String) -> ScriptedServer.Step {
      .text("\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n")
    }

    private static let lastChunk = ScriptedServer.Step.text("0\r\n\r\n")

    // MARK: Heads without a body

    @Test("Interim responses before the final one are passed over", arguments: [100, 102, 103])
    func interim(status: Int) async throws {
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 \(status) Interim", "Content-Length: 999", "ETag: \"wrong\""),
          .head("HTTP/1.1 \(status) Interim"),
        ] + ScriptedServer.ok("final")
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.result?.body == Array("final".utf8))
      #expect(run.log.responses.map(\.status.code) == [200])
      #expect(run.result?.response.headerFields[.eTag] == nil)
    }

    /// Answers 204, with an invalid length if one is given.
    private func serverWithoutContent(length: Int?) throws -> ScriptedServer {
      try ScriptedServer { _ in
        var head = "HTTP/1.1 204 No Content\r\n"
        if let length { head += "Content-Length: \(length)\r\n" }
        return [.text(head + "\r\n")]
      }
    }

    @Test("204 is an empty body, whatever length it claims", arguments: [nil, 0, 5])
    func noContent(length: Int?) async throws {
      let server = try serverWithoutContent(length: length)
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.result?.response.status.code == 204)
      #expect(run.result?.body == [])
    }

    @Test("204 is no empty file: the transfer fails, and nothing appears", arguments: [nil, 0, 5])
    func noContentForAFile(length: Int?) async throws {
      let server = try serverWithoutContent(length: length)
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      let run = await client.run(try .quick(server.url("/"), to: .file(directory.file("a"))))
      #expect(run.error?.code == .status)
      #expect(run.error?.response?.status.code == 204)
      #expect(directory.names.isEmpty)
    }

    @Test("304 is no body to be kept: the transfer fails, and its head can be read")
    func notModified() async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 304 Not Modified", "Content-Length: 500", "ETag: \"v\"")]
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.fields[.ifNoneMatch] = "\"v\""
      let run = await client.run(request)
      #expect(run.error?.code == .status)
      #expect(run.error?.status == 304)
      #expect(run.error?.response?.headerFields[.eTag] == "\"v\"")
      #expect(server.requests.count == 1)
      #expect(directory.names == [])
    }

    // MARK: Bodies

    @Test("Chunks without a length bring every byte, and the total with the last one")
    func chunked() async throws {
      let gate = Gate()
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "ETag: \"v\""),
          Self.chunk("one "), .wait(for: gate), Self.chunk("two "), Self.chunk("three"),
          Self.lastChunk,
        ]
      }
      defer { server.stop() }
      defer { gate.open() }
      let transfer = client.transfer(try .quick(server.url("/")))
      transfer.start()
      try await eventually { transfer.state == .running }
      #expect(transfer.progress.totalByteCount == nil)
      #expect(transfer.progress.fractionCompleted == nil)
      #expect(transfer.progress.estimatedTimeLeft == nil)
      gate.open()
      let run = await TransferRun(transfer)
      #expect(run.result?.body == Array("one two three".utf8))
      #expect(run.log.startedTotal == nil)
    }

    @Test("Bytes of an unknown total are seen as they arrive, and the fraction only at the end")
    func flowing() async throws {
      let gates = [Gate(), Gate()]
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), Self.chunk("first"),
          .wait(for: gates[0]), Self.chunk("second"), .wait(for: gates[1]), Self.lastChunk,
        ]
      }
      defer { server.stop() }
      defer { for gate in gates { gate.open() } }
      var request = try Request.quick(server.url("/"))
      request.destination = .stream()
      let transfer = client.transfer(request)
      var chunks = transfer.body.makeAsyncIterator()
      #expect(try await chunks.next() == Array("first".utf8)[...])
      // Bytes are counted a moment after they were delivered.
      try await eventually { transfer.progress.receivedByteCount == 5 }
      #expect(transfer.progress.fractionCompleted == nil)
      gates[0].open()
      #expect(try await chunks.next() == Array("second".utf8)[...])
      try await eventually { transfer.progress.receivedByteCount == 11 }
      #expect(transfer.progress.fractionCompleted == nil)
      gates[1].open()
      #expect(try await chunks.next() == nil)
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == 11)
    }

    @Test("Chunks that end before the last one are no success")
    func cutChunks() async throws {
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), Self.chunk("one "), .close,
        ]
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.retries = 1
      let run = await client.run(request)
      #expect(run.error?.code == .connectionLost)
      #expect(directory.contents("a") == nil)
      #expect(server.requests.count >= 2)
    }

    @Test("Chunks with a Content-Length are refused, and never mixed with a good answer")
    func chunkedWithLength() async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1
          ? [
            .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Length: 3"),
            Self.chunk("smuggled"), Self.lastChunk, .close,
          ] : ScriptedServer.ok("good")
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.result?.body == Array("good".utf8))
      #expect(run.log.retries.map(\.error.code) == [.invalidResponse])
    }

    @Test("A server that always sends both lengths is given up")
    func alwaysBothLengths() async throws {
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Length: 3"),
          Self.chunk("smuggled"), Self.lastChunk, .close,
        ]
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.retries = 2
      let run = await client.run(request)
      #expect(run.error?.code == .invalidResponse)
      #expect(server.requests.count == 3)
      #expect(directory.names == [])
    }

    @Test("multipart/byteranges, which nobody asked for, is refused", arguments: [200, 206])
    func multipart(status: Int) async throws {
      let body =
        "--b\r\nContent-Range: bytes 0-2/9\r\n\r\nabc\r\n"
        + "--b\r\nContent-Range: bytes 6-8/9\r\n\r\nghi\r\n--b--\r\n"
      let server = try ScriptedServer { _ in
        [
          .head(
            "HTTP/1.1 \(status) OK", "Content-Type: multipart/byteranges; boundary=b",
            "Content-Length: \(body.utf8.count)"), .text(body),
        ]
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.retries = 1
      let run = await client.run(request)
      if status == 206 {
        #expect(run.error?.code == .invalidResponse)
        #expect(directory.names == [])
      } else {
        // A whole body with status 200 is an ordinary file.
        #expect(directory.contents("a") == Array(body.utf8))
      }
    }

    @Test("A body that the end of the connection delimits is whole with it")
    func closeDelimited() async throws {
      let gate = Gate()
      let bytes = ServedFile.randomBytes(300_000)
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Connection: close"), .send(Array(bytes[..<200_000])),
          .wait(for: gate), .send(Array(bytes[200_000...])), .close,
        ]
      }
      defer { server.stop() }
      defer { gate.open() }
      let directory = try TemporaryDirectory()
      let transfer = client.transfer(
        try .quick(server.url("/"), to: .file(directory.file("a"))))
      transfer.start()
      try await eventually { transfer.state == .running }
      #expect(transfer.progress.totalByteCount == nil)
      #expect(transfer.progress.fractionCompleted == nil)
      gate.open()
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == 300_000)
      #expect(directory.contents("a")?.fingerprint == bytes.fingerprint)
      #expect(directory.names == ["a"])
    }

    @Test("A reset is not the end of a body that the connection's end delimits")
    func resetIsNoEnd() async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK"), .text("half"), .pause(milliseconds: 20), .reset]
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.retries = 1
      let run = await client.run(request)
      #expect(run.error?.code == .connectionLost)
      #expect(directory.contents("a") == nil)
    }

    @Test("An HTTP/1.0 answer without a length is taken to the end")
    func oldServer() async throws {
      let server = try ScriptedServer { _ in [.head("HTTP/1.0 200 OK"), .text("old"), .close] }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.result?.body == Array("old".utf8))
    }

    // MARK: Content codings

    private static let plain = Array(
      String(repeating: "the quick brown fox jumps over the lazy dog\n", count: 200).utf8)

    /// ``plain`` in each coding, in base 64.
    private static let coded = [
      "gzip": """
      H4sIAAAAAAACA+3KyQGCQBAAsL9VTGsih4oysOx6Va99mHdSz0Ns7XKaoyv5XGLMV1zbfd0jH0OJ+uPb8fOO\
      PqdDdV3XdV3XdV3XdV3XdV3XdV3XdV3XdV3Xdf/ufgHedXv1YCIAAA==
      """,
      "deflate": """
      eNrtyskBgkAQALC/VUxrIoeKMrDselWvfZh3Us9DbO1ymqMr+VxizFdc233dIx9Difrj2/Hzjj6nQ3Vd13Vd\
      13Vd13Vd13Vd13Vd13Vd13Vd13X/7n4BHb6DDQ==
      """,
      "zstd": """
      KLUv/QRorQEAxAJ0aGUgcXVpY2sgYnJvd24gZm94IGp1bXBzIG92ZXIgdGhlIGxhenkgZG9nCgEAjBGPV2Vy\
      zxE+
      """,
    ]

    private static func codedBytes(_ coding: String) throws -> [UInt8] {
      let text = try #require(coded[coding])
      return Array(try #require(Data(base64Encoded: text)))
    }

    @Test(
      "A coded body with a length is undone where that was asked for",
      arguments: ["gzip", "deflate", "zstd"])
    func decoded(coding: String) async throws {
      let gate = Gate()
      let bytes = try Self.codedBytes(coding)
      let server = try ScriptedServer { _ in
        [
          .head(
            "HTTP/1.1 200 OK", "Content-Encoding: \(coding)", "Content-Length: \(bytes.count)"),
          .send(Array(bytes[..<40])), .wait(for: gate), .send(Array(bytes[40...])),
        ]
      }
      defer { server.stop() }
      defer { gate.open() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.decodesContent = true
      let transfer = client.transfer(request)
      transfer.start()
      try await eventually { transfer.state == .running }
      // The declared length is that of the coded bytes.
      #expect(transfer.progress.totalByteCount == nil)
      #expect(transfer.progress.fractionCompleted == nil)
      gate.open()
      let run = await TransferRun(transfer)
      #expect(directory.contents("a")?.fingerprint == Self.plain.fingerprint)
      #expect(run.result?.byteCount == Int64(Self.plain.count))
      #expect(run.result?.rawByteCount == Int64(bytes.count))
      #expect(server.requests.first?["accept-encoding"].first?.contains("gzip") == true)
      #expect(server.requests.first?["range"] == [])
    }

    @Test("Brotli is undone as well")
    func brotli() async throws {
      // RFC 7932: one uncompressed meta-block of five bytes, then an empty last one.
      let coded: [UInt8] = [0x0B, 0x02, 0x80] + Array("hello".utf8) + [0x03]
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Content-Encoding: br", "Content-Length: \(coded.count)"),
          .send(coded),
        ]
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.decodesContent = true
      let run = await client.run(request)
      #expect(run.result?.body == Array("hello".utf8))
      #expect(run.result?.rawByteCount == Int64(coded.count))
    }

    @Test("A coded body that nobody asked for is kept as it came")
    func codedDespiteIdentity() async throws {
      let bytes = try Self.codedBytes("gzip")
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Content-Encoding: gzip", "Content-Length: \(bytes.count)"),
          .send(bytes),
        ]
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.result?.body == bytes)
      #expect(run.result?.response.headerFields[.contentEncoding] == "gzip")
      // The request may be retried, because another server of the host may respect it.
      #expect(server.requests.count <= 3)
      #expect(server.requests.allSatisfy { $0["accept-encoding"] == ["identity"] })
    }

    @Test("A coded body that is cut is no success")
    func cutCoded() async throws {
      let bytes = try Self.codedBytes("gzip")
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Content-Encoding: gzip", "Content-Length: \(bytes.count)"),
          .send(Array(bytes[..<60])), .close,
        ]
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.decodesContent = true
      request.retries = 1
      let run = await client.run(request)
      #expect(run.error?.code == .connectionLost)
      #expect(directory.contents("a") == nil)
    }

    @Test("An uncoded answer to one who takes codings has its declared length")
    func uncoded() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("plain") }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.decodesContent = true
      let run = await client.run(request)
      #expect(run.result?.body == Array("plain".utf8))
    }

    // MARK: Learned later

    @Test("A total that a later answer tells is right from then on")
    func learnedLater() async throws {
      let tries = Counter()
      let gate = Gate()
      let file = ServedFile(byteCount: 100_000)
      let server = try ScriptedServer { request in
        guard tries.next() == 1 else {
          let steps = file.answer(request)
          return [steps[0], .wait(for: gate)] + steps[1...]
        }
        return [
          .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "ETag: \"v1\""),
          .text("8\r\n"), .send(Array(file.bytes[..<8])), .text("\r\n"), .close,
        ]
      }
      defer { server.stop() }
      defer { gate.open() }
      let transfer = client.transfer(try .quick(server.url("/")))
      transfer.start()
      try await server.waitForRequests(2)
      try await eventually { transfer.progress.totalByteCount != nil }
      #expect(transfer.progress.totalByteCount == 100_000)
      let fraction = try #require(transfer.progress.fractionCompleted)
      #expect(fraction < 0.5)
      gate.open()
      let run = await TransferRun(transfer)
      #expect(run.result?.body.fingerprint == file.bytes.fingerprint)
    }
  }
}
