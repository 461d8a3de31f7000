import ArgumentParser
import DirectoryListing
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import RemoteFiles
import SourceList

/// Reads the directory listings of `httpfs get --recursive`.
///
/// Each level of directories is a run of transfers to memory, which obeys the same options and
/// signals as the downloads that follow.
struct ListingReader {
  let queue: TransferQueue
  let options: TransferOptions
  let access: Access

  /// The maximum number of listings to receive at a time: each may have 16 MiB.
  static let maximumConcurrent = 8

  /// Reads the listings among entries.
  ///
  /// - Parameters:
  ///   - entries: files and listings.
  ///   - filter: chooses among the files and directories of listings.
  ///   - timeLimit: that of the command.
  /// - Returns: the entries with the files of their listings in place of these.
  /// - Throws: ``CommandFailure``, or an exit code if a signal or the time limit has ended it.
  func expanded(
    _ entries: [SessionEntry], filter: ListingFilter, timeLimit: TimeLimit
  ) throws -> [SessionEntry] {
    var walk = ListingWalk(entries, filter: filter)
    while true {
      let level = walk.takeLevel()
      if level.isEmpty { break }
      try read(level, into: &walk, timeLimit: timeLimit.left)
    }
    if !options.quiet { report(walk) }
    let merge = try walk.entries()
    if !options.quiet { merge.printWarning() }
    return merge.entries
  }

  private func read(
    _ level: [ListingWalk.Directory], into walk: inout ListingWalk, timeLimit: Duration?
  ) throws {
    let jobs = level.map {
      TransferRun.Job(name: $0.entry.path, url: access.url($0.entry.source.url))
    }
    var running: [Int: Transfer] = [:]
    var excess: CommandFailure?
    var output = TransferOutput.ofQuestions(
      "reading directory listings", json: options.json, quiet: options.quiet)
    let outcome = TransferRun(queue: queue, isUpload: false, timeLimit: timeLimit).run(
      jobs, output: &output,
      onChange: { _, _ in
        for (index, transfer) in running {
          // The run takes a signal before the rest.
          guard TransferRun.pendingSignal == nil else { return }
          guard let end = transfer.outcome else { continue }
          // Its body is not kept until the level ends.
          running[index] = nil
          guard excess == nil else { continue }
          do throws(CommandFailure) {
            try take(end, of: level[index], into: &walk)
          } catch {
            excess = error
            queue.cancelAll()
          }
        }
      },
      transfer: { index in
        let transfer = queue.add(request(for: level[index].entry))
        running[index] = transfer
        return transfer
      })
    if outcome.isAbandoned { TransferOutput.endWithoutTransfers(json: options.json) }
    try outcome.endIfInterrupted()
    if let excess { throw excess }
    // Without a signal, only the time limit cancels.
    if outcome.cancelledCount > 0 { throw TransferExit.timeout.code }
  }

  private func request(for entry: SessionEntry) -> Request {
    var request = Request(
      url: access.url(entry.source.url),
      destination: .memory(limit: ListingError.maximumByteCount))
    request.confidentialFields = access.fields(for: entry.source)
    if request.confidentialFields[.accept] == nil { request.fields[.accept] = "text/html" }
    request.connections = .exactly(1)
    request.name = entry.path
    options.apply(access, to: &request)
    request.redirects.staysInOrigin = true
    return request
  }

  private func take(
    _ end: Result<TransferResult, TransferError>, of directory: ListingWalk.Directory,
    into walk: inout ListingWalk
  ) throws(CommandFailure) {
    switch end {
    case .failure(let error): walk.fail(directory, JobFailure(error))
    case .success(let result):
      let names: ListedNames
      do throws(FileError) {
        let source = ListingSource(path: directory.entry.name, url: directory.entry.source.url)
        names = try ListedNames(
          result.body, result.response, from: result.url, of: source, depth: directory.depth)
      } catch {
        return walk.fail(directory, JobFailure(error))
      }
      try walk.take(names, of: directory)
    }
  }

  private func report(_ walk: ListingWalk) {
    var reasons: [String] = []
    if walk.hiddenCount > 0 {
      reasons.append(
        "\(walk.hiddenCount) begin with a dot (--include '*' --include '.*' takes them)")
    }
    if walk.skippedCount > 0 {
      reasons.append("\(walk.skippedCount) cannot be names of files here")
    }
    if !reasons.isEmpty {
      printToStandardError(
        "httpfs: warning: \(walk.hiddenCount + walk.skippedCount) names in listings are skipped: "
          + reasons.joined(separator: ", "))
    }
    if walk.isEmpty { printToStandardError("httpfs: the listings hold no file to download") }
  }
}
