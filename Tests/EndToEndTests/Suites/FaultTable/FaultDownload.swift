import Glibc
import Testing

/// `httpfs get` in a row of the fault table, from its start to its outcome.
final class FaultDownload {
  /// The result of a download.
  enum Outcome {
    /// Exit 0 and every byte right.
    case right
    /// Exit 1, a reason, and no file under the name.
    case failed
    /// Either of the two: the fault or a race decides.
    case rightOrFailed
    /// Exit 0 with the error page, which is all that the server ever sends.
    case page
  }

  private let row: FaultRow
  private let process: ChildProcess
  private let path: String
  private let start = ContinuousClock.now

  /// Starts the command.
  init(_ row: FaultRow, url: String, name: String, options: [String]) throws {
    self.row = row
    path = "\(try row.sandbox.makeDirectory("downloads"))/\(name)"
    // Short time limits for the test; the caller's options follow and override them.
    process = try row.sandbox.start(
      [try Products.httpfs, "get", "--quiet", "--timeout", "2", "-o", path] + options + [url])
  }

  /// What the command wrote to standard error.
  var error: String { process.standardError }

  /// Expects the reason for the failure to mention `text`.
  func expectError(
    mentions text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(error.contains(text), sourceLocation: sourceLocation)
  }

  /// Interrupts the command like Ctrl-C; the received bytes stay in the partial file.
  func interrupt() {
    process.signal(SIGINT)
    _ = process.wait(within: .seconds(10))
  }

  /// The length of the partial file, which grows as bytes arrive, or nil.
  var partByteCount: Int64? { FileStatus.byteCount(of: path + ".httpfs-part") }

  /// Waits for the end and compares it with `expected`.
  func expect(
    _ expected: Outcome, version: UInt64 = 1, length: Int64? = nil,
    within limit: Duration = .seconds(40),
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    guard let ending = process.wait(within: limit) else {
      process.kill()
      Issue.record("get still runs after \(limit)", sourceLocation: sourceLocation)
      return
    }
    let isThere = FileStatus.byteCount(of: path) != nil
    if expected == .page {
      #expect(ending == .exited(0) && isThere, "\(error)", sourceLocation: sourceLocation)
      let start = try output(of: ["head", "--bytes=1", "--", path])
      #expect(start == "<", "the page and nothing else", sourceLocation: sourceLocation)
    } else if ending == .exited(0) {
      #expect(expected != .failed, "get succeeds", sourceLocation: sourceLocation)
      let reference = try row.reference(version: version, length: length ?? row.length)
      let comparison = try run(["cmp", "--", path, reference])
      if !comparison.succeeded {
        row.recordWrongDownload()
        Issue.record(
          "wrong bytes: \(comparison.output)\(comparison.error)", sourceLocation: sourceLocation)
      }
    } else {
      #expect(expected != .right, "get fails: \(error)", sourceLocation: sourceLocation)
      #expect(ending.isTransferFailure, sourceLocation: sourceLocation)
      #expect(!isThere, "a failed get leaves a file", sourceLocation: sourceLocation)
      #expect(!error.isEmpty, "get fails without a word", sourceLocation: sourceLocation)
    }
  }
}
