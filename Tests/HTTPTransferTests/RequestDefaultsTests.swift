import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The default values of a request.
  @Suite struct RequestDefaults {
    private let client = TransferClient()

    @Test("The defaults are those that are documented")
    func defaults() throws {
      let request = Request(url: try RemoteURL("http://localhost/"))
      #expect(request.method == .get)
      #expect(request.tag == 0)
      #expect(request.priority == 0)
      #expect(request.connections.maximum == 6)
      #expect(request.retries == nil)
      #expect(request.resumes)
      #expect(request.redirects == RedirectPolicy(maximum: 10, keepsMethod: false))
      #expect(request.range == nil && request.body == nil && request.checksum == nil)
      #expect(!request.decodesContent && !request.authenticatesOnChallenge)
      #expect(request.fields.isEmpty && request.confidentialFields.isEmpty)
      #expect(TransferQueue.Configuration().maximumConcurrent == 4)
      #expect(TransferQueue.Configuration().maximumPerHost == nil)
      #expect(!TransferQueue.Configuration().stopsAtFailure)
      #expect(!TransferQueue.Configuration().learnsLengths)
    }

    @Test(
      "A request of swift-http-types brings its method, URL and fields, which stay with its host")
    func fromHTTPRequest() throws {
      let head = HTTPRequest(
        method: .put, scheme: "http", authority: "example.org:81", path: "/a?b=c",
        headerFields: [.accept: "text/plain"])
      let request = try Request(head)
      #expect(request.url.text == "http://example.org:81/a?b=c")
      #expect(request.method == .put)
      #expect(request.confidentialFields == [.accept: "text/plain"])
      #expect(request.fields.isEmpty)
      #expect(throws: RemoteURL.ParseError.missingHost) {
        try Request(HTTPRequest(method: .get, scheme: "https", authority: nil, path: "/"))
      }
    }

    @Test("A request that has become a transfer does not change with the variable it came from")
    func immutable() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { server.stop() }
      var request = try Request.quick(server.url("/first"))
      request.tag = 7
      let transfer = client.transfer(request)
      request.url = try RemoteURL(server.url("/second"))
      request.tag = 8
      _ = await TransferRun(transfer)
      #expect(transfer.request.tag == 7)
      #expect(server.requests.map(\.target) == ["/first"])
    }

    @Test("Any number of connections below one is one", arguments: [0, -5, 1])
    func fewConnections(count: Int) {
      #expect(HTTPTransfer.Connections.exactly(count).maximum == 1)
      #expect(HTTPTransfer.Connections.adaptive(upTo: count).maximum == 1)
    }

    @Test("Only a GET is shared among connections", arguments: [HTTPRequest.Method.get, .post])
    func acceleration(method: HTTPRequest.Method) async throws {
      var served = ServedFile(byteCount: 6 << 20)
      served.isPaced = true
      let file = served
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.method = method
      request.connections = .exactly(6)
      let run = await client.run(request)
      #expect(run.result?.body.fingerprint == file.bytes.fingerprint)
      if method == .get {
        #expect(server.requests.count > 1)
        #expect(server.maximumOpenCount <= 6)
      } else {
        #expect(server.requests.count == 1)
        #expect(server.requests.first?["range"] == [])
      }
    }

    @Test(
      "A range that is none of a file fails before anything is sent",
      arguments: [0..<0, 5..<5, -5..<10, -5 ..< -2])
    func impossibleRange(range: ByteRange) async throws {
      let server = try ScriptedServer(answer: ServedFile(byteCount: 100).answer)
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.range = range
      let run = await client.run(request)
      #expect(run.error?.code == .invalidRequest)
      #expect(run.error?.reason.contains("the range \(range)") == true)
      #expect(server.requests.isEmpty)
      #expect(directory.names.isEmpty)
      #expect(client.activeTransferCount == 0)
    }

    @Test("A transfer that is started twice runs once")
    func startTwice() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { server.stop() }
      let transfer = client.transfer(try .quick(server.url("/")))
      #expect(transfer.state == .queued)
      transfer.start()
      transfer.start()
      _ = await TransferRun(transfer)
      transfer.start()
      #expect(try await transfer.result().body == Array("end".utf8))
      #expect(server.requests.count == 1)
    }

    @Test("A transfer that nobody holds goes on to its end")
    func unheld() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      client.transfer(try .quick(server.url("/"), to: .file(directory.file("a")))).start()
      try await eventually { directory.names == ["a"] }
    }

    @Test("The client's short forms do what their names say")
    func shortForms() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      let url = try RemoteURL(server.url("/"))
      #expect(try await client.get(url).body == Array("end".utf8))
      #expect(try await client.download(url, to: directory.file("a")).byteCount == 3)
      #expect(directory.contents("a") == Array("end".utf8))
    }

    @Test("Errors, results and descriptions hold no credentials")
    func noSecrets() async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 403 Forbidden", "Content-Length: 0")]
      }
      defer { server.stop() }
      var request = try Request.quick(
        server.url("/a?token=CANARY", userInfo: "user:CANARY@"))
      request.confidentialFields[.authorization] = "CANARY"
      let error = try #require(await client.run(request).error)
      #expect(!error.description.contains("CANARY"))
      #expect(!error.url.description.contains("CANARY"))
      #expect(!error.reason.contains("CANARY"))
      #expect(server.requests.first?.headText.contains("CANARY") == true)
    }
  }
}
