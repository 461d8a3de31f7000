import HTTPTransfer

/// Adds up a transfer's events and records violations.
struct EventLedger: Sendable {
  private(set) var received: Int64 = 0
  private(set) var resumed: Int64 = 0
  private(set) var total: Int64 = 0
  /// The first `resumed`; nil if there was none.
  private(set) var firstResumed: Int64?
  private(set) var restartReasons: [String] = []
  private(set) var retryCount = 0
  private(set) var hasStarted = false
  private(set) var hasEnded = false
  private(set) var violations: [String] = []
  private var count = 0

  /// The number of bytes at the destination according to the events.
  var present: Int64 { received + resumed }

  mutating func note(_ event: TransferEvent) {
    if event.number != count { violations.append("event \(event.number) follows \(count - 1)") }
    count = event.number + 1
    if hasEnded { violations.append("\(event.kind) after the end") }
    switch event.kind {
    case .started(let totalByteCount):
      if event.number != 0 { violations.append("started as event \(event.number)") }
      hasStarted = true
      total += totalByteCount ?? 0
    case .resumed(let byteCount):
      if firstResumed == nil { firstResumed = byteCount }
      resumed += byteCount
    case .received(let byteCount): received += byteCount
    case .sent(let byteCount): violations.append("\(byteCount) bytes sent by a download")
    case .totalChanged(let difference):
      if difference == 0, total != 0 { violations.append("a change of the total by 0") }
      total += difference
    case .retrying(_, let attempt, _):
      retryCount += 1
      if attempt < 1 { violations.append("attempt \(attempt)") }
    case .restarted(let reason):
      restartReasons.append(reason)
      if reason.isEmpty { violations.append("a new beginning without a reason") }
    case .finished, .failed: hasEnded = true
    case .redirected, .responded, .mirrorExcluded: break
    }
    if present < 0 { violations.append("\(present) bytes present") }
    if total < 0 { violations.append("a total of \(total)") }
  }

  /// Checks the conditions at the end of the sequence, given the transfer's outcome.
  mutating func close(_ outcome: Result<TransferResult, TransferError>) {
    if !hasEnded { violations.append("no finished or failed") }
    switch outcome {
    case .success(let result):
      if present != result.byteCount {
        violations.append("\(resumed) resumed + \(received) received of \(result.byteCount) bytes")
      }
      if total != result.byteCount {
        violations.append("totals add up to \(total) of \(result.byteCount) bytes")
      }
      if resumed != result.resumedByteCount {
        violations.append("\(resumed) resumed, the result says \(result.resumedByteCount)")
      }
    case .failure(let error):
      if error.reason.isEmpty { violations.append("a failure without a reason") }
    }
  }
}
