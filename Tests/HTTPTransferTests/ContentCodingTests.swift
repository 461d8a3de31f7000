import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Coded bodies that are decoded: their formats, their ends, and the limits while decoding
  /// pauses.
  @Suite struct ContentCodings {
    private let client = TransferClient()
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static let text = Array(
      (0..<20_000).map { "line \($0)\n" }.joined().utf8)

    /// A response whose body ends with the connection.
    private static func endless(_ coding: String, _ body: [UInt8]) -> [ScriptedServer.Step] {
      [.head("HTTP/1.1 200 OK", "Content-Encoding: \(coding)"), .send(body), .close]
    }

    private func request(
      _ server: ScriptedServer, to destination: Destination = .memory()
    ) throws -> Request {
      var request = try Request.quick(server.url("/"), to: destination)
      request.decodesContent = true
      request.retries = 2
      return request
    }

    // MARK: What is coded data

    struct Body: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let coding: String
      let bytes: [UInt8]
      let decoded: [UInt8]

      init(_ name: String, _ coding: String, _ bytes: [UInt8], _ decoded: [UInt8] = text) {
        testDescription = name
        self.coding = coding
        self.bytes = bytes
        self.decoded = decoded
      }
    }

    static let bodies = [
      Body("gzip", "gzip", Coded.deflate(text, .gzip)),
      Body(
        "two members of gzip", "gzip",
        Coded.deflate(Array(text[..<1000]), .gzip) + Coded.deflate(Array(text[1000...]), .gzip)),
      Body("a zlib stream", "deflate", Coded.deflate(text, .zlib)),
      Body("bare deflate", "deflate", Coded.deflate(text, .bare)),
      Body("brotli", "br", Coded.brotliHello, Array("hello".utf8)),
      Body(
        "two frames of Zstandard", "zstd", Coded.zstandardRuns(1) + Coded.zstandardRuns(2),
        [UInt8](repeating: UInt8(ascii: "a"), count: 3 * 128 << 10)),
      Body(
        "gzip in deflate", "x-gzip , Deflate",
        Coded.deflate(Coded.deflate(text, .gzip), .zlib)),
      Body("gzip twice", "gzip, identity, gzip", Coded.deflate(Coded.deflate(text, .gzip), .gzip)),
    ]

    @Test("Coded bodies are decoded, with a length or without", arguments: bodies, [true, false])
    func decoded(_ body: Body, hasLength: Bool) async throws {
      let server = try ScriptedServer { _ in
        guard hasLength else { return Self.endless(body.coding, body.bytes) }
        return [
          .head(
            "HTTP/1.1 200 OK", "Content-Encoding: \(body.coding)",
            "Content-Length: \(body.bytes.count)"), .send(body.bytes),
        ]
      }
      defer { server.stop() }
      let run = await client.run(try request(server))
      #expect(run.result?.body.fingerprint == body.decoded.fingerprint)
      #expect(run.result?.rawByteCount == Int64(body.bytes.count))
      #expect(server.requests.map { $0["accept-encoding"] } == [["deflate, gzip, br, zstd"]])
    }

    @Test("A range of a decoded body is counted in decoded bytes")
    func range() async throws {
      let bytes = Coded.deflate(Self.text, .gzip)
      let server = try ScriptedServer { _ in Self.endless("gzip", bytes) }
      defer { server.stop() }
      var request = try request(server)
      request.range = 1000..<3000
      let run = await client.run(request)
      #expect(run.result?.body.fingerprint == Array(Self.text[1000..<3000]).fingerprint)
    }

    @Test(
      "What cannot be decoded fails at its head, without a second request",
      arguments: ["compress", "gzip, foo", "gzip, gzip, gzip"])
    func unknown(coding: String) async throws {
      let server = try ScriptedServer { _ in Self.endless(coding, [1, 2, 3]) }
      defer { server.stop() }
      let run = await client.run(try request(server))
      #expect(run.error?.code == .invalidResponse)
      #expect(run.error?.reason.contains("content coding") == true)
      #expect(server.requests.count == 1)
    }

    @Test("Decoded bytes of a cut download are never the beginning of a raw one")
    func rawAfterDecoded() async throws {
      let bytes = Coded.deflate(Self.text, .gzip)
      let fields = ["Content-Encoding: gzip", "ETag: \"v\"", "Accept-Ranges: bytes"]
      let tries = Counter()
      let server = try ScriptedServer { request in
        if tries.next() == 1 {
          let length = "Content-Length: \(bytes.count)"
          return [
            .head("HTTP/1.1 200 OK", fields[0], fields[1], length), .send(Array(bytes.dropLast(9))),
            .close,
          ]
        }
        guard let range = request.range else {
          return [
            .head("HTTP/1.1 200 OK", fields[0], fields[1], "Content-Length: \(bytes.count)"),
            .send(bytes),
          ]
        }
        let last = min(range.last ?? .max, bytes.count - 1)
        let part = Array(bytes[range.first...last])
        return [
          .head(
            "HTTP/1.1 206 Partial Content", fields[0], fields[1], "Content-Length: \(part.count)",
            "Content-Range: bytes \(range.first)-\(last)/\(bytes.count)"),
          .send(part),
        ]
      }
      defer { server.stop() }
      var request = try request(server, to: .file(directory.file("a")))
      request.retries = 0
      #expect(await client.run(request).error?.code == .connectionLost)
      request.decodesContent = false
      #expect(await client.run(request).result?.byteCount == Int64(bytes.count))
      #expect(directory.contents("a")?.fingerprint == bytes.fingerprint)
    }

    @Test("A caller's own Accept-Encoding replaces the usual one")
    func ownCodings() async throws {
      let server = try ScriptedServer { _ in Self.endless("br", Coded.brotliHello) }
      defer { server.stop() }
      var request = try request(server)
      request.confidentialFields[.acceptEncoding] = "br"
      #expect(await client.run(request).result?.body == Array("hello".utf8))
      #expect(server.requests.map { $0["accept-encoding"] } == [["br"]])
    }

    @Test("The coding none is no coding")
    func none() async throws {
      let server = try ScriptedServer { _ in Self.endless("none", Array("hello".utf8)) }
      defer { server.stop() }
      #expect(await client.run(try request(server)).result?.body == Array("hello".utf8))
    }

    static let damaged = [
      Body("damaged gzip", "gzip", Array(Coded.deflate(text, .gzip)[..<500]) + [1, 2] + text),
      Body("bytes after gzip", "gzip", Coded.deflate(text, .gzip) + [1, 2, 3]),
      Body("bytes after brotli", "br", Coded.brotliHello + [1]),
      Body("bytes after a zlib stream", "deflate", Coded.deflate(text, .zlib) + [1]),
      Body("a window of 16 MiB", "zstd", Coded.zstandardRuns(1, windowLog: 24)),
    ]

    @Test("Damaged data is no success", arguments: damaged)
    func refused(_ body: Body) async throws {
      let server = try ScriptedServer { _ in Self.endless(body.coding, body.bytes) }
      defer { server.stop() }
      let run = await client.run(try request(server, to: .file(directory.file("a"))))
      #expect(run.error?.code == .invalidResponse)
      #expect(run.error?.reason.contains("data") == true)
      #expect(directory.contents("a") == nil)
    }

    // MARK: Where the data ends

    @Test("Data that ends early with its connection is cut, not whole", arguments: bodies)
    func cut(_ body: Body) async throws {
      let server = try ScriptedServer { _ in
        Self.endless(body.coding, Array(body.bytes.dropLast()))
      }
      defer { server.stop() }
      let run = await client.run(try request(server, to: .file(directory.file("a"))))
      #expect(run.error?.code == .connectionLost)
      #expect(run.error?.reason.contains("ends too early") == true)
      #expect(directory.contents("a") == nil)
      #expect(server.requests.count == 3)
    }

    @Test(
      "A cut answer comes again whole, and nothing of the first one stays", arguments: [1, 9000])
    func cutOnce(missing: Int) async throws {
      let tries = Counter()
      let first = Coded.deflate([UInt8](repeating: UInt8(ascii: "x"), count: 300_000), .gzip)
      let second = Coded.deflate(Self.text, .gzip)
      let cut = Array((first + second).dropLast(missing))
      let server = try ScriptedServer { _ in
        Self.endless("gzip", tries.next() == 1 ? cut : second)
      }
      defer { server.stop() }
      let run = await client.run(try request(server, to: .file(directory.file("a"))))
      #expect(run.result?.byteCount == Int64(Self.text.count))
      #expect(directory.contents("a")?.fingerprint == Self.text.fingerprint)
      #expect(server.requests.count == 2)
    }

    @Test(
      "An empty coded body is an empty file only if its head says where it ends",
      arguments: [true, false])
    func empty(hasLength: Bool) async throws {
      let server = try ScriptedServer { _ in
        hasLength
          ? [.head("HTTP/1.1 200 OK", "Content-Encoding: gzip", "Content-Length: 0")]
          : Self.endless("gzip", [])
      }
      defer { server.stop() }
      let run = await client.run(try request(server))
      #expect(run.result?.body == (hasLength ? [] : nil))
      #expect(run.error?.code == (hasLength ? nil : .connectionLost))
    }

    // MARK: How much waits

    /// Coded data of 2 KiB, which decodes to 64 MiB.
    private static let bomb = Coded.zstandardRuns(512)
    private static let bombByteCount = Int64(64 << 20)

    @Test("However much a body grows, only what a slow taker has room for is decoded")
    func slowTaker() async throws {
      let server = try ScriptedServer { _ in Self.endless("zstd", Self.bomb) }
      defer { server.stop() }
      let transfer = client.transfer(try request(server, to: .stream()))
      var byteCount: Int64 = 0
      for try await chunk in transfer.body {
        byteCount += Int64(chunk.count)
        if byteCount % (8 << 20) < chunk.count { try await Task.sleep(for: .milliseconds(20)) }
        let ahead = transfer.progress.receivedByteCount - byteCount
        #expect(ahead <= 2 << 20)
      }
      #expect(byteCount == Self.bombByteCount)
      let run = await TransferRun(transfer)
      #expect(run.result?.rawByteCount == Int64(Self.bomb.count))
    }

    @Test("A transfer whose taker takes nothing can be cancelled while its body is decoded")
    func cancelled() async throws {
      let server = try ScriptedServer { _ in Self.endless("zstd", Self.bomb) }
      defer { server.stop() }
      let transfer = client.transfer(try request(server, to: .stream()))
      let body = transfer.body
      try await eventually { transfer.progress.receivedByteCount >= 1 << 20 }
      try await Task.sleep(for: .milliseconds(50))
      #expect(transfer.progress.receivedByteCount <= 2 << 20)
      transfer.cancel()
      let run = await TransferRun(transfer)
      #expect(run.error?.code == .cancelled)
      _ = body
    }

    @Test("A pause holds what is still to be decoded after the last byte has come")
    func paused() async throws {
      let server = try ScriptedServer { _ in Self.endless("zstd", Self.bomb) }
      defer { server.stop() }
      let transfer = client.transfer(try request(server, to: .stream()))
      var chunks = transfer.body.makeAsyncIterator()
      // All room is taken, so the rest waits to be decoded.
      try await eventually { transfer.progress.receivedByteCount >= 1 << 20 }
      transfer.pause()
      try await eventually { transfer.state == .paused }
      let received = transfer.progress.receivedByteCount
      var byteCount: Int64 = 0
      while byteCount < received, let chunk = try await chunks.next() {
        byteCount += Int64(chunk.count)
      }
      try await Task.sleep(for: .milliseconds(50))
      #expect(transfer.progress.receivedByteCount == received)
      transfer.resume()
      while let chunk = try await chunks.next() { byteCount += Int64(chunk.count) }
      #expect(byteCount == Self.bombByteCount)
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == Self.bombByteCount)
      #expect(server.requests.count == 1)
    }

    @Test("A rate limit is one of the bytes that travel")
    func rateLimit() async throws {
      let bytes = Coded.deflate([UInt8](repeating: 0, count: 128 << 20), .gzip)
      let server = try ScriptedServer { _ in Self.endless("gzip", bytes) }
      defer { server.stop() }
      var request = try request(server, to: .discard)
      request.rateLimit = RateLimit(bytesPerSecond: Int64(bytes.count))
      let run = await client.run(request)
      #expect(run.result?.byteCount == 128 << 20)
      #expect(run.result.map { $0.duration < .seconds(10) } == true)
    }
  }
}
