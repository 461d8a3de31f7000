import HTTPTransfer
import HTTPTransferCore
import HTTPTypes

/// The questions for names that wait or run, and the answers so far.
///
/// A server that cannot be reached, does not answer in time, or wants fewer requests, gets no more
/// questions: other servers are still asked. If a redirect may have led a question to another
/// server, it fails alone.
struct NameQuestions {
  private struct Question {
    let transfer: Transfer
    /// The origin that is asked.
    let origin: String
    let watch: QuestionWatch
    /// When its first request was sent; nil before that.
    var sentAt: ContinuousClock.Instant?
    /// Why it was ended here; nil if it was not.
    var failure: JobFailure?

    /// Whether all of its requests have been to the origin, as far as is known.
    var isAtOrigin: Bool { transfer.request.signer == nil && !watch.isRedirected }
  }

  /// How long an answer may take from the first request on, with all retries and redirects.
  private static let timeLimit = Duration.seconds(10)

  private(set) var answers: [Int: ServerNames.Answer] = [:]
  private var open: [Int: Question] = [:]
  /// Why origins get no more questions.
  private var failures: [String: JobFailure] = [:]

  /// Takes the question with this number, which its queue has just taken.
  mutating func add(_ transfer: Transfer, of number: Int, to origin: String) {
    open[number] = Question(transfer: transfer, origin: origin, watch: QuestionWatch(transfer))
    if let failure = failures[origin] { end(number, .isNotAsked(after: failure)) }
  }

  /// Takes the answers that have come, and ends the questions that nobody should wait for.
  mutating func look(now: ContinuousClock.Instant) {
    for (number, question) in open {
      if let end = question.transfer.outcome {
        open[number] = nil
        take(end, of: question, number)
      } else if let sentAt = question.sentAt, now - sentAt >= Self.timeLimit {
        giveUp(number, question)
      }
    }
    // Also those that the queue has begun in the place of those that have just failed.
    for (number, question) in open where question.sentAt == nil {
      if let failure = failures[question.origin] {
        end(number, .isNotAsked(after: failure))
      } else if question.transfer.progress.connections > 0 {
        open[number]?.sentAt = now
      }
    }
  }

  private mutating func take(
    _ end: Result<TransferResult, TransferError>, of question: Question, _ number: Int
  ) {
    switch end {
    case .failure(let error) where error.code == .cancelled:
      // Otherwise the command ends.
      if let failure = question.failure { answers[number] = .failure(failure) }
    case .failure(let error):
      if error.url.normalizedOrigin == question.origin, error.forbidsQuestions {
        failures[question.origin] = JobFailure(error)
      }
      answers[number] = ServerNames.Answer(end)
    case .success: answers[number] = ServerNames.Answer(end)
    }
  }

  /// Ends a question without an answer in time.
  private mutating func giveUp(_ number: Int, _ question: Question) {
    let failure = question.watch.refusal.map { JobFailure($0) } ?? .isSilent
    if question.isAtOrigin { failures[question.origin] = failure }
    end(number, failure)
  }

  private mutating func end(_ number: Int, _ failure: JobFailure) {
    guard open[number]?.failure == nil else { return }
    open[number]?.failure = failure
    open[number]?.transfer.cancel()
  }
}

extension TransferError {
  /// Whether the server has not answered at all, or wants to be asked later.
  fileprivate var forbidsQuestions: Bool {
    [.timedOut, .unresolvedHost, .connectionRefused].contains(code)
      || response?.headerFields[.retryAfter] != nil
  }
}
