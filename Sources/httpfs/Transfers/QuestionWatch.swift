import HTTPTransfer
import Synchronization

/// What the events of a question tell before its end.
final class QuestionWatch: Sendable {
  private struct Record {
    var isRedirected = false
    var refusal: TransferError?
  }

  private let record = Mutex(Record())

  init(_ transfer: Transfer) {
    let events = transfer.events
    Task { [self] in
      for await event in events {
        switch event.kind {
        case .redirected: record.withLock { $0.isRedirected = true }
        case .retrying(let error, _, _): record.withLock { $0.refusal = error }
        default: break
        }
      }
    }
  }

  /// Whether it has followed a redirect.
  var isRedirected: Bool { record.withLock { $0.isRedirected } }

  /// The last failure of a request after which another one was sent, or will be.
  var refusal: TransferError? { record.withLock { $0.refusal } }
}
