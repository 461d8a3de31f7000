import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// A transfer that has ended uses no descriptors.
  ///
  /// Each test runs in its own process, because other tests open files, too.
  @Suite struct Descriptors {
    private static var openCount: Int {
      ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).count
    }

    /// The possible difference from the connections of concurrent transfers, at both ends.
    private static let tolerance = 30

    /// An answer in one piece: two would wait 40 ms for each other (Nagle, delayed ACK).
    private static let answer = ScriptedServer.Step.text(
      "HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 5\r\n\r\ntaken")

    /// Runs `requests`, one after the other, in a queue that keeps them.
    ///
    /// - Returns: the growth of the number of open descriptors since the first one.
    private static func growth(_ requests: [Request]) async throws -> Int {
      var configuration = TransferQueue.Configuration()
      configuration.maximumConcurrent = 1
      let queue = TransferQueue(configuration: configuration)
      queue.start()
      for request in requests.prefix(1) { queue.add(request) }
      await queue.finished()
      let before = openCount
      for request in requests.dropFirst() { queue.add(request) }
      await queue.finished()
      // The queue still has all of them.
      #expect(queue.transfers.count == requests.count)
      return openCount - before
    }

    @Test("Files that were downloaded hold no descriptors")
    func downloads() async {
      await #expect(processExitsWith: .success) {
        let server = try ScriptedServer { _ in [Descriptors.answer] }
        let directory = try TemporaryDirectory()
        let requests = try (0..<300).map { number in
          try Request.quick(server.url("/"), to: .file(directory.file("\(number)")))
        }
        let growth = try await Descriptors.growth(requests)
        #expect(growth <= Descriptors.tolerance)
        #expect(directory.names.count == 300)
      }
    }

    @Test("Files that were uploaded hold no descriptors")
    func uploads() async {
      await #expect(processExitsWith: .success) {
        let server = try ScriptedServer { _ in [Descriptors.answer] }
        let directory = try TemporaryDirectory()
        try directory.write([1, 2, 3], to: "source")
        let requests = try (0..<300).map { number in
          var request = try Request.quick(server.url("/\(number)"))
          request.method = .put
          request.body =
            number % 2 == 0
            ? .file(directory.file("source"))
            : .multipart([FormPart(name: "f", content: .file(path: directory.file("source")))])
          return request
        }
        let growth = try await Descriptors.growth(requests)
        #expect(growth <= Descriptors.tolerance)
        #expect(server.requests.allSatisfy { !$0.body.isEmpty })
      }
    }

    @Test("Downloads that failed, with and without a partial file, hold no descriptors")
    func failures() async {
      await #expect(processExitsWith: .success) {
        let server = try ScriptedServer { request in
          request.target == "/none"
            ? [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")]
            : [
              .head("HTTP/1.1 200 OK", "ETag: \"v\"", "Content-Length: 10"), .text("half"), .close,
            ]
        }
        let directory = try TemporaryDirectory()
        let requests = try (0..<200).map { number in
          var request = try Request.quick(
            server.url(number % 2 == 0 ? "/none" : "/half"), to: .file(directory.file("\(number)")))
          request.retries = 0
          return request
        }
        let growth = try await Descriptors.growth(requests)
        #expect(growth <= Descriptors.tolerance)
        // A partial file and its record for every second transfer.
        #expect(directory.names.count == 200)
      }
    }

    @Test("Transfers that wait in a queue hold no descriptors")
    func waiting() async {
      await #expect(processExitsWith: .success) {
        let directory = try TemporaryDirectory()
        try directory.write([1, 2, 3], to: "source")
        let queue = TransferQueue()
        let before = Descriptors.openCount
        for number in 0..<300 {
          var request = try Request.quick(
            "http://127.0.0.1:1/", to: .file(directory.file("\(number)")))
          request.method = .put
          request.body = .file(directory.file("source"))
          queue.add(request)
        }
        #expect(Descriptors.openCount - before <= Descriptors.tolerance)
        queue.cancelAll()
        await queue.finished()
        #expect(Descriptors.openCount - before <= Descriptors.tolerance)
      }
    }
  }
}
