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

  /// How often an answer that fails is requested again: the download says why it fails.
  private static let retryLimit = 1
  /// How long a server may keep silent.
  private static let stallLimit = Duration.seconds(10)

  /// The entries with the names that their servers give.
  ///
  /// Without a usable answer, an entry keeps the name of its URL. If a signal or the time limit of
  /// the command ends the run, an exit code is thrown.
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
    var names: [Int: String] = [:]
    var output = TransferOutput.ofQuestions(
      "asking for file names", json: options.json, quiet: options.quiet)
    let outcome = TransferRun(queue: queue, isUpload: false, timeLimit: timeLimit.left).run(
      jobs, output: &output,
      onChange: { _, _ in
        for (index, transfer) in running {
          guard let end = transfer.outcome else { continue }
          running[index] = nil
          names[index] = Self.name(in: end)
        }
      },
      transfer: { index in
        let transfer = queue.add(request(for: entries[asked[index]]))
        running[index] = transfer
        return transfer
      })
    if outcome.isAbandoned { TransferOutput.endWithoutTransfers(json: options.json) }
    try outcome.endIfInterrupted()
    // Without a signal, only the time limit cancels.
    if outcome.cancelledCount > 0 { throw TransferExit.timeout.code }
    for (index, name) in names { entries[asked[index]].take(nameOfServer: name) }
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
    request.retries = min(options.retries, Self.retryLimit)
    request.stallTimeout = min(request.stallTimeout, Self.stallLimit)
    return request
  }

  private static func name(in end: Result<TransferResult, TransferError>) -> String? {
    let response: HTTPResponse
    switch end {
    case .success(let result): response = result.response
    case .failure(let error):
      // An empty file has no first byte.
      guard let refusal = error.response, refusal.status.code == 416 else { return nil }
      response = refusal
    }
    guard let field = response.headerFields[fields: .contentDisposition].first else { return nil }
    return field.withUnsafeBytesOfValue { ContentDisposition(field: $0).fileName }
      .flatMap(SuggestedName.safe)
  }
}
