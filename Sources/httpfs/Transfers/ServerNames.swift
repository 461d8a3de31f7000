import ArgumentParser
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import SourceList

/// Asks servers for the names of files, which they send in `Content-Disposition`.
///
/// It requests the first byte of each file with `GET`: signed URLs and many servers refuse `HEAD`.
struct ServerNames {
  let queue: TransferQueue
  let options: TransferOptions
  /// Makes the request of a download.
  let makeRequest: (SessionEntry) -> Request

  /// What a server says about the name of a file.
  enum Answer {
    case name(String)
    /// An answer without a usable name.
    case noName
    /// No answer.
    case failure(JobFailure)
  }

  /// How often an answer that fails is requested again: the download says why it fails.
  private static let retryLimit = 1
  /// How long a server may keep silent.
  private static let stallLimit = Duration.seconds(10)
  /// How long all servers may keep silent: the other questions then end.
  private static let silenceLimit = Duration.seconds(10)

  /// The entries with the names that their servers give.
  ///
  /// Without a usable answer, an entry keeps the name of its URL, or fails if that has none. If a
  /// signal or the time limit of the command ends the run, an exit code is thrown.
  func named(_ entries: [SessionEntry], timeLimit: TimeLimit) throws -> [SessionEntry] {
    let asked = entries.indices.filter { entries[$0].asksForName }
    guard !asked.isEmpty else { return entries }
    var entries = entries
    let jobs = try asked.enumerated().map { count, index in
      try TransferRun.endIfSignalled(at: count)
      let url = entries[index].source.url
      return TransferRun.Job(name: url.redacted, url: url)
    }
    var running: [Int: Transfer] = [:]
    var answers: [Int: Answer] = [:]
    var lastEnd = ContinuousClock.now
    var isOver = false
    var output = TransferOutput.ofQuestions(
      "asking for file names", json: options.json, quiet: options.quiet)
    let outcome = TransferRun(queue: queue, isUpload: false, timeLimit: timeLimit.left).run(
      jobs, output: &output,
      onChange: { _, _ in
        for (index, transfer) in running {
          guard let end = transfer.outcome else { continue }
          running[index] = nil
          answers[index] = isOver ? .failure(.isSilent) : Self.answer(in: end)
          lastEnd = .now
        }
        guard !isOver, .now - lastEnd >= Self.silenceLimit else { return }
        isOver = true
        for transfer in running.values { transfer.cancel() }
      },
      transfer: { index in
        let transfer = queue.add(request(for: entries[asked[index]]))
        running[index] = transfer
        if isOver { transfer.cancel() }
        return transfer
      })
    if outcome.isAbandoned { TransferOutput.endWithoutTransfers(json: options.json) }
    try outcome.endIfInterrupted()
    // Without a signal, only a time limit cancels.
    if outcome.cancelledCount > 0, !isOver { throw TransferExit.timeout.code }
    for (index, answer) in answers { entries[asked[index]].take(answer) }
    return entries
  }

  private func request(for entry: SessionEntry) -> Request {
    var request = makeRequest(entry)
    request.range = 0..<1
    request.connections = .exactly(1)
    request.mirrors = []
    request.checksum = nil
    request.pieces = nil
    request.completeLength = nil
    request.decodesContent = false
    // The download waits as long as the server asks for.
    request.retryPolicy.retryAfterCeiling = .zero
    request.retries = min(options.retries, Self.retryLimit)
    request.stallTimeout = min(request.stallTimeout, Self.stallLimit)
    return request
  }

  private static func answer(in end: Result<TransferResult, TransferError>) -> Answer {
    let response: HTTPResponse
    switch end {
    case .success(let result): response = result.response
    case .failure(let error):
      // An empty file has no first byte.
      guard let refusal = error.response, refusal.status.code == 416 else {
        return .failure(JobFailure(error))
      }
      response = refusal
    }
    guard let field = response.headerFields[fields: .contentDisposition].first,
      let name = field.withUnsafeBytesOfValue({ ContentDisposition(field: $0).fileName })
        .flatMap(SuggestedName.safe)
    else { return .noName }
    return .name(name)
  }
}
