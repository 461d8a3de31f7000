import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Uploads that are sent again.
  ///
  /// The request's retries limit the number, and an answer is not treated as a version of a file.
  @Suite struct RepeatedUploads {
    private let client = TransferClient()
    private let body = ServedFile.randomBytes(10_000)

    private func request(_ server: ScriptedServer, retries: Int) throws -> Request {
      var request = try Request.quick(server.url("/up"))
      request.method = .put
      request.body = .bytes(body)
      request.retries = retries
      return request
    }

    /// The head of an answer that differs from all previous ones.
    private static func head(_ number: Int) -> ScriptedServer.Step {
      .head(
        "HTTP/1.1 200 OK", "Last-Modified: Sat, 21 Nov 2026 04:0\(number % 10):00 GMT",
        "ETag: \"\(number)\"", "Content-Length: 20")
    }

    @Test("An answer with another date than the one before it is no changed file")
    func anotherDate() async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        let number = tries.next()
        return number < 3
          ? [Self.head(number), .close]
          : [Self.head(number), .text(String(repeating: "x", count: 20))]
      }
      defer { server.stop() }
      let run = await client.run(try request(server, retries: 2))
      #expect(run.result?.byteCount == 20)
      #expect(run.log.restarts == [])
      #expect(run.log.retries.map(\.error.code) == [.connectionLost, .connectionLost])
      #expect(server.requests.map(\.method) == ["PUT", "PUT", "PUT"])
      #expect(server.requests.allSatisfy { $0.body == body })
    }

    @Test(
      "A PUT whose answers never come whole is sent as often as the retries say",
      arguments: [0, 1, 2, 5], [0, 10])
    func asOftenAsTheRetriesSay(retries: Int, answerByteCount: Int) async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        [Self.head(tries.next()), .text(String(repeating: "x", count: answerByteCount)), .close]
      }
      defer { server.stop() }
      let run = await client.run(try request(server, retries: retries))
      #expect(run.error?.code == .connectionLost)
      #expect(server.requests.count == retries + 1)
      #expect(run.log.retries.map(\.attempt) == Array(1...(retries + 1)).dropLast())
    }
  }
}
