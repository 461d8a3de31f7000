import HTTPTransfer
import HTTPTransferCore
import Testing

/// An executed transfer with the events of a listener.
struct TransferRun: Sendable {
  let transfer: Transfer
  let outcome: Result<TransferResult, TransferError>
  /// The events of a listener from the start on.
  let log: EventLog
  /// The events of a listener that joined after the end.
  let lateLog: EventLog

  /// Awaits the end of `transfer` and checks the rules for all transfers.
  ///
  /// See ``EventLog/checkOrder(isSilent:_:)``; the sums are checked, too.
  ///
  /// - Parameters:
  ///   - transfer: the transfer to execute.
  ///   - pause: how long the listener sleeps after each event.
  ///   - location: the place to report violations.
  init(
    _ transfer: Transfer, listenerPause pause: Duration = .zero,
    _ location: SourceLocation = #_sourceLocation
  ) async {
    self.transfer = transfer
    let events = transfer.events
    async let log = EventLog(events, pause: pause)
    do throws(TransferError) {
      outcome = .success(try await transfer.result())
    } catch {
      outcome = .failure(error)
    }
    self.log = await log
    lateLog = await EventLog(transfer.events)
    check(location)
  }

  var result: TransferResult? { try? outcome.get() }

  var error: TransferError? { if case .failure(let error) = outcome { error } else { nil } }

  private func check(_ location: SourceLocation) {
    let progress = transfer.progress
    for log in [log, lateLog] {
      if log.events.count == 1 {
        // It failed before it began.
        #expect(log.failure?.code == error?.code, sourceLocation: location)
      } else {
        log.checkOrder(location)
      }
      #expect(log.resumed == progress.resumedByteCount, sourceLocation: location)
      #expect(log.resumed + log.received == progress.receivedByteCount, sourceLocation: location)
      #expect(log.sent == progress.sentByteCount, sourceLocation: location)
      #expect(log.total == progress.totalByteCount ?? 0, sourceLocation: location)
      #expect(log.failure?.code == error?.code, sourceLocation: location)
    }
    guard let result else { return }
    #expect(progress.state == .finished, sourceLocation: location)
    #expect(progress.fractionCompleted == 1, sourceLocation: location)
    #expect(log.resumed + log.received == result.byteCount, sourceLocation: location)
    #expect(log.resumed == result.resumedByteCount, sourceLocation: location)
    #expect(log.total == result.byteCount, sourceLocation: location)
    #expect(progress.totalByteCount == result.byteCount, sourceLocation: location)
    if let body = progress.bodyByteCount {
      #expect(log.sent == body, sourceLocation: location)
    }
  }
}

extension TransferClient {
  /// Executes `request` with a listener, and checks the rules for all transfers.
  func run(
    _ request: Request, listenerPause: Duration = .zero,
    _ location: SourceLocation = #_sourceLocation
  ) async -> TransferRun {
    await TransferRun(transfer(request), listenerPause: listenerPause, location)
  }
}

extension Request {
  /// A request for a test, with the shortest delays between retries.
  ///
  /// Its stall timeout is long, so a response that is silent because a busy machine stalls is not
  /// retried.
  static func quick(
    _ url: String, to destination: Destination = .memory()
  ) throws -> Request {
    var request = Request(url: try RemoteURL(url), destination: destination)
    request.retryPolicy = RetryPolicy(base: .milliseconds(2), ceiling: .milliseconds(20))
    request.stallTimeout = .seconds(600)
    // Many tests delay a response, to check the state meanwhile.
    request.isHedged = false
    return request
  }
}

/// Returns when `condition` holds; the test's time limit ends the wait.
func eventually(_ condition: () -> Bool) async throws {
  while !condition() { try await Task.sleep(for: .milliseconds(2)) }
}
