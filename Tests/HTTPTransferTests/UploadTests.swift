import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The bodies of uploads: the bytes that arrive, and the progress as they leave.
  @Suite struct Uploads {
    private let client = TransferClient()
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func request(
      _ method: HTTPRequest.Method, _ server: ScriptedServer, _ body: RequestBody,
      userInfo: String = ""
    ) throws -> Request {
      var request = try Request.quick(server.url("/up", userInfo: userInfo))
      request.method = method
      request.body = body
      return request
    }

    // MARK: Bodies

    @Test("Bytes arrive as they are", arguments: [0, 1, 100_000, 3 << 20])
    func bytes(byteCount: Int) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("taken") }
      defer { server.stop() }
      let body = ServedFile.randomBytes(byteCount)
      let run = await client.run(
        try request(.put, server, .bytes(body, contentType: "text/x-canary")))
      #expect(run.result?.body == Array("taken".utf8))
      #expect(run.log.sent == Int64(byteCount))
      let received = try #require(server.requests.first)
      #expect(received.method == "PUT")
      #expect(received.body.fingerprint == body.fingerprint)
      #expect(received["content-length"] == ["\(byteCount)"])
      #expect(received["content-type"] == ["text/x-canary"])
      #expect(received["range"] == [])
      #expect(server.requests.count == 1)
    }

    @Test("A file arrives as it is, and another after it", arguments: [0, 5 << 20])
    func file(byteCount: Int) async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 201 Created", "Content-Length: 0")]
      }
      defer { server.stop() }
      let body = ServedFile.randomBytes(byteCount)
      try directory.write(body, to: "source")
      for _ in 1...2 {
        let run = await client.run(
          try request(.put, server, .file(directory.file("source"))))
        #expect(run.result?.response.status.code == 201)
        #expect(run.log.sent == Int64(byteCount))
        #expect(run.transfer.progress.bodyByteCount == Int64(byteCount))
      }
      #expect(server.requests.map { $0.body == body } == [true, true])
    }

    @Test("A form is encoded as HTML forms are")
    func form() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("") }
      defer { server.stop() }
      let run = await client.run(
        try request(
          .post, server,
          .form([
            (name: "a b", value: "1+1=2"), (name: "ü", value: "x&y\r\n"),
            (name: "", value: "*-._~"),
          ])))
      #expect(run.result != nil)
      let received = try #require(server.requests.first)
      #expect(
        String(decoding: received.body, as: UTF8.self)
          == "a+b=1%2B1%3D2&%C3%BC=x%26y%0D%0A&=*-._%7E")
      #expect(received["content-type"] == ["application/x-www-form-urlencoded"])
    }

    @Test("A multipart form arrives with its texts, files, names and types")
    func multipart() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("") }
      defer { server.stop() }
      let content = ServedFile.randomBytes(200_000)
      try directory.write(content, to: "data \"1\".bin")
      let run = await client.run(
        try request(
          .post, server,
          .multipart([
            FormPart(name: "title", content: .text("größer")),
            FormPart(name: "f\r\n", content: .file(path: directory.file("data \"1\".bin"))),
            FormPart(
              name: "g", content: .file(path: directory.file("data \"1\".bin"), name: "other"),
              contentType: "image/png"),
          ])))
      #expect(run.result != nil)
      let received = try #require(server.requests.first)
      let type = try #require(received["content-type"].first)
      #expect(type.hasPrefix("multipart/form-data; boundary="))
      let boundary = String(type.dropFirst("multipart/form-data; boundary=".count))
      let disposition = "Content-Disposition: form-data; name="
      var wanted = Array(
        ("--\(boundary)\r\n\(disposition)\"title\"\r\n\r\ngrößer\r\n"
          + "--\(boundary)\r\n\(disposition)\"f%0D%0A\"; filename=\"data %221%22.bin\"\r\n"
          + "Content-Type: application/octet-stream\r\n\r\n").utf8)
      wanted += content
      wanted += Array(
        ("\r\n--\(boundary)\r\n\(disposition)\"g\"; filename=\"other\"\r\n"
          + "Content-Type: image/png\r\n\r\n").utf8)
      wanted += content
      wanted += Array("\r\n--\(boundary)--\r\n".utf8)
      #expect(received.body.fingerprint == wanted.fingerprint)
      #expect(run.log.sent == Int64(wanted.count))
    }

    @Test("A media type that a caller has taken from elsewhere adds no field to a part")
    func hostileType() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("") }
      defer { server.stop() }
      let part = FormPart(
        name: "a", content: .text("x"), contentType: "text/plain\r\nX: y\r\n\r\nz")
      let run = await client.run(try request(.post, server, .multipart([part])))
      #expect(run.result != nil)
      let body = String(decoding: try #require(server.requests.first).body, as: UTF8.self)
      #expect(body.contains("\r\nContent-Type: text/plain  X: y    z\r\n\r\nx\r\n"), "\(body)")
    }

    @Test(
      "A Content-Type among the fields is the only one, but for forms", arguments: [true, false])
    func ownType(isConfidential: Bool) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("") }
      defer { server.stop() }
      for body: RequestBody in [.bytes([1], contentType: "a/b"), .multipart([])] {
        var request = try request(.post, server, body)
        let fields: HTTPFields = [.contentType: "text/x"]
        if isConfidential { request.confidentialFields = fields } else { request.fields = fields }
        #expect(await client.run(request).result != nil)
      }
      let types = server.requests.map { $0["content-type"] }
      #expect(types.first == ["text/x"])
      #expect(types.last?.count == 1)
      #expect(types.last?.first?.hasPrefix("multipart/form-data; boundary=") == true)
    }

    @Test("A length or a framing among the fields does not cut the body")
    func ownFraming() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("") }
      defer { server.stop() }
      var request = try request(.put, server, .bytes(Array("whole".utf8)))
      request.fields = [.contentLength: "2"]
      request.confidentialFields = [.transferEncoding: "chunked"]
      let run = await client.run(request)
      #expect(run.log.sent == 5)
      let received = try #require(server.requests.first)
      #expect(received.body == Array("whole".utf8))
      #expect(received["content-length"] == ["5"])
      #expect(received["transfer-encoding"] == [])
    }

    // MARK: Progress

    @Test("Progress moves from the first bytes on, long before the server has all")
    func progress() async throws {
      let gate = Gate()
      let byteCount = 32 << 20
      let server = try ScriptedServer(bodyLimit: 64 << 10) { _ in
        [.wait(for: gate), .receiveBody] + ScriptedServer.ok("taken")
      }
      defer { server.stop() }
      defer { gate.open() }
      let transfer = client.transfer(
        try request(.put, server, .bytes([UInt8](repeating: 7, count: byteCount))))
      let before = transfer.progress
      #expect(before.fractionCompleted == nil || before.fractionCompleted == 0)
      transfer.start()
      try await eventually { transfer.progress.sentByteCount > 0 }
      let fraction = try #require(transfer.progress.fractionCompleted)
      #expect(fraction > 0 && fraction < 0.75)
      #expect(transfer.progress.bodyByteCount == Int64(byteCount))
      #expect(transfer.progress.state == .running)
      gate.open()
      let run = await TransferRun(transfer)
      #expect(run.log.sent == Int64(byteCount))
    }

    @Test("An upload that is paused sends nothing, and goes on where it was")
    func pause() async throws {
      let gate = Gate()
      let body = ServedFile.randomBytes(32 << 20)
      let server = try ScriptedServer(bodyLimit: 64 << 10) { _ in
        [.wait(for: gate), .receiveBody] + ScriptedServer.ok("taken")
      }
      defer { server.stop() }
      defer { gate.open() }
      let transfer = client.transfer(try request(.put, server, .bytes(body)))
      transfer.start()
      try await eventually { transfer.progress.sentByteCount > 0 }
      transfer.pause()
      try await eventually { transfer.state == .paused }
      gate.open()
      try await Task.sleep(for: .milliseconds(100))
      let paused = transfer.progress.sentByteCount
      try await Task.sleep(for: .milliseconds(100))
      #expect(transfer.progress.sentByteCount == paused)
      #expect(paused < Int64(body.count))
      transfer.resume()
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == 5)
      #expect(server.requests.map { $0.body == body } == [true])
    }

    // MARK: Sent again

    @Test("Credentials that wait for a challenge: what was sent in vain is taken back")
    func challenge() async throws {
      let server = try ScriptedServer { request in
        request["authorization"] == []
          ? [
            .head(
              "HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"",
              "Content-Length: 0")
          ] : ScriptedServer.ok("taken")
      }
      defer { server.stop() }
      let body = ServedFile.randomBytes(500_000)
      var request = try request(.put, server, .bytes(body), userInfo: "user:pw@")
      request.authenticatesOnChallenge = true
      let run = await client.run(request)
      #expect(run.result?.body == Array("taken".utf8))
      #expect(
        server.requests.map { $0["authorization"] } == [[], ["Basic dXNlcjpwdw=="]])
      #expect(server.requests.last?.body.fingerprint == body.fingerprint)
      #expect(run.log.negativeDifferences == [-500_000])
      #expect(run.log.sent == 500_000)
    }

    @Test("Wrong credentials are refused once, and not sent for ever")
    func wrongCredentials() async throws {
      let server = try ScriptedServer { _ in
        [
          .head(
            "HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"",
            "Content-Length: 0")
        ]
      }
      defer { server.stop() }
      var request = try request(.put, server, .bytes([1, 2, 3]), userInfo: "user:pw@")
      request.authenticatesOnChallenge = true
      let run = await client.run(request)
      #expect(run.error?.status == 401)
      #expect(server.requests.count == 2)
    }

    @Test("A PUT that meets an overloaded server is sent again, whole, with right sums")
    func overloaded() async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() < 3
          ? [.head("HTTP/1.1 503 Busy", "Content-Length: 0")] : ScriptedServer.ok("taken")
      }
      defer { server.stop() }
      let body = ServedFile.randomBytes(100_000)
      try directory.write(body, to: "source")
      let run = await client.run(
        try request(.put, server, .file(directory.file("source"))))
      #expect(run.result?.body == Array("taken".utf8))
      #expect(server.requests.map { $0.body == body } == [true, true, true])
      #expect(run.log.negativeDifferences == [-100_000, -100_000])
      #expect(run.log.retries.map(\.error.status) == [503, 503])
    }

    @Test("A server that does not support the method is not asked again", arguments: [501, 505])
    func unsupported(status: Int) async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 \(status) No", "Content-Length: 0")]
      }
      defer { server.stop() }
      let run = await client.run(try request(.put, server, .bytes(Array("body".utf8))))
      #expect(run.error?.status == status)
      #expect(server.requests.count == 1)
    }

    @Test("A PUT whose connection is reset is sent again")
    func reset() async throws {
      let tries = Counter()
      let server = try ScriptedServer(bodyLimit: 1000) { _ in
        tries.next() == 1 ? [.reset] : [.receiveBody] + ScriptedServer.ok("taken")
      }
      defer { server.stop() }
      let body = ServedFile.randomBytes(400_000)
      let run = await client.run(try request(.put, server, .bytes(body)))
      #expect(run.result?.body == Array("taken".utf8))
      #expect(server.requests.last?.body.fingerprint == body.fingerprint)
      #expect(run.log.sent == 400_000)
    }

    @Test("A POST that may have arrived is not sent again", arguments: [503, 500, 0])
    func postIsNotRepeated(status: Int) async throws {
      let server = try ScriptedServer { _ in
        status == 0 ? [.reset] : [.head("HTTP/1.1 \(status) Busy", "Content-Length: 0")]
      }
      defer { server.stop() }
      let run = await client.run(try request(.post, server, .bytes([1, 2, 3])))
      #expect(run.error != nil)
      #expect(run.error?.status == (status == 0 ? nil : status))
      #expect(server.requests.count == 1)
      #expect(run.log.retries.isEmpty)
    }

    @Test("A POST that certainly has not arrived is tried again")
    func postIsRetried() async throws {
      let refusing = try RefusingPort()
      defer { refusing.close() }
      var request = try Request.quick("http://127.0.0.1:\(refusing.number)/")
      request.method = .post
      request.body = .bytes([1, 2, 3])
      request.retries = 2
      let run = await client.run(request)
      #expect(run.error?.code == .connectionRefused)
      #expect(run.log.retries.count == 2)
      #expect(run.log.sent == 0)
    }

    @Test("A POST is not sent again on a kept connection that the server has closed meanwhile")
    func postOnDeadConnection() async throws {
      let server = try ScriptedServer { request in
        request.method == "POST" ? [.reset] : ScriptedServer.ok("get")
      }
      defer { server.stop() }
      _ = await client.run(try .quick(server.url("/")))
      let run = await client.run(try request(.post, server, .bytes([1, 2, 3])))
      #expect(run.error?.code == .connectionLost)
      #expect(server.requests.count { $0.method == "POST" } == 1)
    }

    // MARK: Sources that fail

    @Test(
      "A source that cannot be read fails before the server is asked", arguments: ["none", "dir"])
    func unreadable(name: String) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("taken") }
      defer { server.stop() }
      try FileManager.default.createDirectory(
        atPath: directory.file("dir"), withIntermediateDirectories: false)
      for body in [
        RequestBody.file(directory.file(name)),
        .multipart([FormPart(name: "f", content: .file(path: directory.file(name)))]),
      ] {
        let run = await client.run(try request(.post, server, body))
        #expect(run.error?.code == .unreadableBody)
        #expect(run.error?.errno == (name == "dir" ? EISDIR : ENOENT))
        #expect(run.error?.reason.contains(name) == true)
      }
      #expect(server.requests.isEmpty)
    }

    @Test("A source that changes while it is sent is no success", arguments: ["shrinks", "grows"])
    func changing(how: String) async throws {
      let gate = Gate()
      let byteCount = 32 << 20
      let server = try ScriptedServer(bodyLimit: 64 << 10) { _ in
        [.wait(for: gate), .receiveBody] + ScriptedServer.ok("taken")
      }
      defer { server.stop() }
      defer { gate.open() }
      try directory.write([UInt8](repeating: 7, count: byteCount), to: "source")
      let transfer = client.transfer(
        try request(.put, server, .file(directory.file("source"))))
      transfer.start()
      try await eventually { transfer.progress.sentByteCount > 0 }
      let source = try #require(FileHandle(forUpdatingAtPath: directory.file("source")))
      try source.truncate(atOffset: UInt64(how == "shrinks" ? byteCount / 2 : byteCount + 100))
      try source.close()
      gate.open()
      let run = await TransferRun(transfer)
      #expect(run.error?.code == .unreadableBody)
      #expect(run.error?.reason.contains("changed") == true)
      #expect(server.requests.count == 1)
      // The server never received a complete body.
      try await eventually { server.openCount == 0 }
      #expect(server.requests.first.map { $0.body.count < byteCount } == true)
    }
  }
}
