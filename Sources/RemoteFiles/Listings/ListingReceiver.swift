internal import DirectoryListing
internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes

/// Receives a directory's listing.
///
/// `@unchecked Sendable`: created by one thread and handed to the client, it is used on the
/// network thread only.
final class ListingReceiver: ExchangeReceiver, @unchecked Sendable {
  private let id: ProbeID
  private let directory: ListedDirectory
  private let body: ListingBody
  private var outcome = Outcome.awaited

  /// The result of the response; the end of the exchange acts on it.
  private enum Outcome {
    /// No head has arrived. → any other
    case awaited
    /// The body is the listing. → `failed`
    case listing(ListingAnswer)
    /// The known names are confirmed.
    case unchanged
    case failed(FileError, retryAfter: Duration?)
  }

  init(id: ProbeID, directory: ListedDirectory) {
    self.id = id
    self.directory = directory
    body = ListingBody(budget: directory.environment.listingBudget)
  }

  func receive(
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition {
    let verdict = ResponseVerdict(head, asked: nil, now: Int64(time(nil)))
    switch verdict {
    case .whole(let content):
      do throws(FileError) {
        outcome = .listing(
          try ListingAnswer(head.headerFields, content, from: url, to: directory.source))
        return .proceed
      } catch {
        outcome = .failed(error, retryAfter: nil)
        // The rest of an unusable body is not read.
        return .stop
      }
    case .notModified:
      outcome = .unchanged
    case .unavailable(_, let delay):
      outcome = .failed(FileError(verdict), retryAfter: delay)
    default:
      outcome = .failed(FileError(verdict), retryAfter: nil)
    }
    return .discard
  }

  func receive(body bytes: UnsafeRawBufferPointer) -> ExchangeDisposition {
    switch body.append(bytes) {
    case .taken: return .proceed
    case .overLimit:
      outcome = .failed(FileError(ListingError.tooLarge), retryAfter: nil)
    case .overBudget:
      outcome = .failed(
        FileError(.unavailable, "too many large listings at once"), retryAfter: nil)
    }
    return .stop
  }

  func held(until moment: ContinuousClock.Instant?, exchange: ExchangeID) {
    if let moment { directory.held(id, until: moment, exchange: exchange) }
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    switch (outcome, completion) {
    case (.unchanged, _): directory.unchanged(id)
    case (.failed(let failure, let retryAfter), _):
      directory.failed(id, failure, retryAfter: retryAfter)
    case (.listing(let answer), .finished): directory.received(id, body, answer)
    case (_, .failed(let error)): directory.failed(id, error)
    case (_, .finished), (_, .stopped), (_, .cancelled):
      directory.failed(id, FileError(.timedOut, "no answer from the server"), retryAfter: nil)
    }
  }
}
