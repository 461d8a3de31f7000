import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Uploads whose answer is at another URL: what was sent once is not sent there.
  @Suite struct RedirectedUploads {
    private let client = HTTPClient()
    private let body = ServedFile.randomBytes(50_000)

    private func request(_ method: HTTPRequest.Method, _ url: String) throws -> Request {
      var request = try Request.quick(url)
      request.method = method
      request.body = .bytes(body, contentType: "text/x-canary")
      return request
    }

    @Test("A PUT that 303 turned into a GET stays one when the target's answer is cut")
    func cutBehindSeeOther() async throws {
      let tries = Counter()
      let server = try ScriptedServer { request in
        if request.target == "/a" { return ScriptedServer.redirect(303, to: "/b") }
        return tries.next() < 3
          ? [.head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("01234"), .close]
          : ScriptedServer.ok("0123456789")
      }
      defer { server.stop() }
      let run = await client.run(try request(.put, server.url("/a")))
      #expect(run.result?.body == Array("0123456789".utf8))
      let targets = server.requests.filter { $0.target == "/b" }
      #expect(targets.map(\.method) == ["GET", "GET", "GET"])
      for target in targets {
        #expect(target.contentLength == 0)
        #expect(target.body.isEmpty)
        #expect(target["content-type"] == [])
        #expect(target["transfer-encoding"] == [])
        #expect(target["expect"] == [])
      }
      // Each time the whole, where it belongs.
      let sources = server.requests.filter { $0.target == "/a" }
      #expect(sources.allSatisfy { $0.method == "PUT" && $0.body == body })
      #expect(sources.count == 3)
    }

    @Test("A PUT that 303 turned into a GET stays one when the target is overloaded or refuses")
    func refusedBehindSeeOther() async throws {
      let tries = Counter()
      let server = try ScriptedServer { request in
        if request.target == "/a" { return ScriptedServer.redirect(303, to: "/b") }
        return tries.next() == 1
          ? [.head("HTTP/1.1 503 Busy", "Content-Length: 0")]
          : [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")]
      }
      defer { server.stop() }
      let run = await client.run(try request(.put, server.url("/a")))
      #expect(run.error?.status == 404)
      #expect(server.requests.map(\.method) == ["PUT", "GET", "PUT", "GET"])
      #expect(server.requests.map(\.target) == ["/a", "/b", "/a", "/b"])
    }

    @Test("A POST that led to a host which refuses is sent once", arguments: [302, 303, 307, 308])
    func refusedNextHost(status: Int) async throws {
      let port = try ScriptedServer.unusedPort()
      let server = try ScriptedServer { _ in
        ScriptedServer.redirect(status, to: "http://127.0.0.1:\(port)/b")
      }
      defer { server.stop() }
      let run = await client.run(try request(.post, server.url("/a")))
      #expect(run.error?.code == .connectionRefused)
      #expect(server.requests.map(\.method) == ["POST"])
      #expect(server.requests.first?.body.fingerprint == body.fingerprint)
      #expect(run.log.retries.isEmpty)
    }

    @Test("A POST whose answer behind 303 is cut is sent once")
    func postCutBehindSeeOther() async throws {
      let server = try ScriptedServer { request in
        request.target == "/a"
          ? ScriptedServer.redirect(303, to: "/b")
          : [.head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("01234"), .close]
      }
      defer { server.stop() }
      let run = await client.run(try request(.post, server.url("/a")))
      #expect(run.error?.code == .connectionLost)
      #expect(server.requests.map(\.method) == ["POST", "GET"])
    }
  }
}
