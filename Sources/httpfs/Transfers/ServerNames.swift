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
  private static let retryLimit = 2
  /// How long each of these waits, if the server asks for that: all end within the time limit.
  private static let retryAfterCeiling = Duration.seconds(4)
  /// How many questions run at a time, and how many of one host.
  private static let (limit, hostLimit) = (16, 4)

  /// The configuration of a queue for questions, from that of the downloads: an answer is short.
  static func configuration(
    from downloads: TransferQueue.Configuration
  ) -> TransferQueue.Configuration {
    var configuration = downloads
    configuration.stopsAtFailure = false
    configuration.maximumConcurrent = limit
    configuration.maximumPerHost = min(
      hostLimit, downloads.maximumConcurrent, downloads.maximumPerHost ?? hostLimit)
    return configuration
  }

  /// The entries with the names that their servers give.
  ///
  /// Without a usable answer, an entry keeps the name of its URL, or fails if that has none. If a
  /// signal or the time limit of the command ends the run, an exit code is thrown.
  func named(_ entries: [SessionEntry], timeLimit: TimeLimit) throws -> [SessionEntry] {
    let asked = entries.indices.filter {
      entries[$0].asksForName && entries[$0].failure == nil
    }
    guard !asked.isEmpty else { return entries }
    var entries = entries
    let jobs = try asked.enumerated().map { count, index in
      try TransferRun.endIfSignalled(at: count)
      let url = entries[index].source.url
      return TransferRun.Job(name: url.redacted, url: url)
    }
    var questions = NameQuestions()
    var output = TransferOutput.ofQuestions(
      "asking for file names", json: options.json, quiet: options.quiet)
    let outcome = TransferRun(queue: queue, isUpload: false, timeLimit: timeLimit.left).run(
      jobs, output: &output,
      onChange: { _, _ in questions.look(now: .now) },
      transfer: { number in
        let entry = entries[asked[number]]
        let transfer = queue.add(request(for: entry))
        questions.add(transfer, of: number, to: entry.source.url.normalizedOrigin)
        return transfer
      })
    if outcome.isAbandoned { TransferOutput.endWithoutTransfers(json: options.json) }
    try outcome.endIfInterrupted()
    if outcome.isOverTime { throw TransferExit.timeout.code }
    for (number, answer) in questions.answers { entries[asked[number]].take(answer) }
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
    // The download waits longer.
    request.retryPolicy.retryAfterCeiling = Self.retryAfterCeiling
    request.retries = min(options.retries, Self.retryLimit)
    return request
  }
}

extension ServerNames.Answer {
  init(_ end: Result<TransferResult, TransferError>) {
    let response: HTTPResponse
    switch end {
    case .success(let result): response = result.response
    case .failure(let error):
      // An empty file has no first byte.
      guard let refusal = error.response, refusal.status.code == 416 else {
        self = .failure(JobFailure(error))
        return
      }
      response = refusal
    }
    let name = response.headerFields[fields: .contentDisposition].first?
      .withUnsafeBytesOfValue { ContentDisposition(field: $0).fileName }
    self = name.flatMap(SuggestedName.safe).map { .name($0) } ?? .noName
  }
}
