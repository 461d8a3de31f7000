import HTTPTransfer

/// One transfer of a script's request, from start to end, and the events that its listeners got.
struct TransferAttempt: Sendable {
  /// The actions on a transfer while it runs.
  struct Verbs: Sendable {
    var cancelAfter: Duration?
    var pause: (after: Duration, lasting: Duration)?
    var takerDelay: Duration?
  }

  let outcome: Result<TransferResult, TransferError>
  /// The body, if the destination was memory or a stream.
  let body: [UInt8]
  let ledger: EventLedger
  /// The violations in words.
  let violations: [String]

  /// Longer than any script: a transfer that reaches this limit hangs.
  private static let limit = Duration.seconds(30)

  var error: TransferError? {
    if case .failure(let error) = outcome { error } else { nil }
  }

  /// Runs `request` to its end, or ends it when it hangs.
  init(_ request: Request, client: TransferClient, verbs: Verbs = Verbs()) async {
    let transfer = client.transfer(request)
    let start = ContinuousClock.now
    let events = transfer.events
    async let listening = Self.ledger(of: events)
    async let taking = Self.body(of: transfer, request.destination, delay: verbs.takerDelay)
    let watch = Task {
      try await Task.sleep(for: Self.limit)
      transfer.cancel()
    }
    let acting = Task { try await Self.act(verbs, on: transfer) }
    do throws(TransferError) {
      outcome = .success(try await transfer.result())
    } catch {
      outcome = .failure(error)
    }
    watch.cancel()
    acting.cancel()

    var ledger = await listening
    ledger.close(outcome)
    var violations = ledger.violations
    if ContinuousClock.now - start >= Self.limit {
      violations.append("hangs: \(transfer.progress)")
    }
    var body = await taking
    if case .success(let result) = outcome {
      if case .memory = request.destination { body = result.body }
      if transfer.progress.receivedByteCount != result.byteCount {
        violations.append("the progress ends at \(transfer.progress.receivedByteCount) bytes")
      }
    }
    if !transfer.state.isFinal { violations.append("state \(transfer.state) after the end") }
    // A late listener gets the same sums.
    var late = await Self.ledger(of: transfer.events)
    late.close(outcome)
    violations += late.violations.map { "late listener: \($0)" }
    if late.present != ledger.present || late.total != ledger.total {
      violations.append(
        "late listener: \(late.present) of \(late.total), not \(ledger.present) of \(ledger.total)")
    }
    self.body = body
    self.ledger = ledger
    self.violations = violations
  }

  private static func ledger(of events: TransferEvents) async -> EventLedger {
    var ledger = EventLedger()
    for await event in events { ledger.note(event) }
    return ledger
  }

  /// The bytes that a stream delivers before it ends or fails.
  private static func body(
    of transfer: Transfer, _ destination: Destination, delay: Duration?
  ) async -> [UInt8] {
    guard case .stream = destination else { return [] }
    var bytes: [UInt8] = []
    // A failure of the stream is a failure of the transfer, whose result has it.
    _ = try? await { () async throws(TransferError) in
      for try await chunk in transfer.body {
        bytes += chunk
        if let delay, bytes.count % 7 == 0 { try? await Task.sleep(for: delay) }
      }
    }()
    return bytes
  }

  private static func act(_ verbs: Verbs, on transfer: Transfer) async throws {
    if let cancelAfter = verbs.cancelAfter {
      try await Task.sleep(for: cancelAfter)
      transfer.cancel()
    }
    if let pause = verbs.pause {
      try await Task.sleep(for: pause.after)
      transfer.pause()
      try? await Task.sleep(for: pause.lasting)
      transfer.resume()
    }
  }
}
