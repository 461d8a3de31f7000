import Synchronization

/// A ``ScriptedServer`` whose answers change while it listens, so the URL stays the same.
///
/// It stops with its last reference.
final class SwitchedServer: Sendable {
  typealias Answer = @Sendable (ReceivedRequest) -> [ScriptedServer.Step]

  private final class Switch: Sendable {
    let answer = Mutex<Answer>({ _ in [.close] })
  }

  private let current = Switch()
  private let server: ScriptedServer
  private let firstRequest = Mutex(0)

  init() throws {
    let current = current
    server = try ScriptedServer { request in current.answer.withLock { $0 }(request) }
  }

  deinit { server.stop() }

  /// Changes the answers from now on.
  func answer(_ answer: @escaping Answer) {
    current.answer.withLock { $0 = answer }
    firstRequest.withLock { $0 = server.requests.count }
  }

  /// The requests since the last change of the answers.
  var requestsSinceAnswer: [ReceivedRequest] {
    Array(server.requests[firstRequest.withLock { $0 }...])
  }

  func url(_ path: String) -> String { server.url(path) }
}
