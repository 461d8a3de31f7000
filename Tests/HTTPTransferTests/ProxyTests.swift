import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Requests through a proxy that the environment names.
  @Suite struct Proxies {
    /// The environment belongs to the process, and libcurl reads it for every transfer.
    private static func setProxy(_ server: ScriptedServer) {
      for name in ["http_proxy", "https_proxy", "ALL_PROXY", "all_proxy", "no_proxy", "NO_PROXY"] {
        unsetenv(name)
      }
      setenv("https_proxy", "http://127.0.0.1:\(server.port)", 1)
    }

    @Test("The answer to CONNECT is never the response: without TLS behind it there is none")
    func connectHead() async {
      // Use a separate process, because of its environment.
      await #expect(processExitsWith: .success) {
        let heads = [
          "HTTP/1.1 200 Connection established\r\n\r\n",
          "HTTP/1.1 200 OK\r\nETag: \"proxy\"\r\nContent-Type: text/plain\r\n\r\n",
        ]
        for head in heads {
          for method in [HTTPRequest.Method.get, .head, .put] {
            let server = try ScriptedServer { _ in [.text(head), .text("no handshake"), .close] }
            defer { server.stop() }
            Proxies.setProxy(server)
            var request = try Request.quick("https://origin.example/file")
            request.method = method
            request.retries = 1
            if method == .put { request.body = .bytes([1, 2, 3]) }
            let run = await TransferClient().run(request)
            #expect(run.error != nil, "\(method) \(head)")
            #expect(run.error?.status == nil)
            #expect(run.log.responses.isEmpty)
            #expect(run.log.received == 0)
            #expect(server.requests.first?.method == "CONNECT")
            #expect(server.requests.first?.target == "origin.example:443")
          }
        }
      }
    }

    @Test("A proxy that refuses, redirects or challenges has not answered for the origin")
    func connectRefusal() async {
      await #expect(processExitsWith: .success) {
        let target = try ScriptedServer { _ in ScriptedServer.ok("not asked for") }
        defer { target.stop() }
        let heads = [
          "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 302 Found\r\nLocation: \(target.url("/"))\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        ]
        for head in heads {
          let server = try ScriptedServer { _ in [.text(head), .close] }
          defer { server.stop() }
          Proxies.setProxy(server)
          var request = try Request.quick("https://user:secret@origin.example/file")
          request.authenticatesOnChallenge = true
          request.retries = 1
          let run = await TransferClient().run(request)
          #expect(run.error != nil, "\(head)")
          #expect(run.log.responses.isEmpty)
          #expect(run.log.redirects.isEmpty)
          #expect(server.requests.allSatisfy { $0.method == "CONNECT" })
          // The proxy does not get the origin's credentials.
          #expect(server.requests.allSatisfy { $0["authorization"] == [] })
          #expect(target.requests.isEmpty)
        }
      }
    }
  }
}
