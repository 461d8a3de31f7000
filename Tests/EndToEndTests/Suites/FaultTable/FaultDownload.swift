import Glibc
import Testing

/// `httpfs get` of a fault table's row, from its start to its outcome.
final class FaultDownload {
  /// What may come of a download.
  enum Outcome {
    /// Exit 0 and every byte right.
    case right
    /// Exit 1, a reason, and no file under the name.
    case failed
    /// One of the two: the fault decides, or a race.
    case rightOrFailed
    /// Exit 0 with the page that is all the server ever sends.
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
    // Patience in proportion to tests; the caller's options come later and win.
    process = try row.sandbox.start(
      [try Products.httpfs, "get", "--quiet", "--timeout", "2", "-o", path] + options + [url])
  }

  /// What the command wrote to standard error.
  var error: String { process.standardError }

  /// The reason for which it failed must mention `text`.
  func expectError(
    mentions text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(error.contains(text), sourceLocation: sourceLocation)
  }

  /// Interrupts the command as Ctrl-C does; what it has stays in the partial file.
  func interrupt() {
    process.signal(SIGINT)
    _ = process.wait(within: .seconds(10))
  }

  /// The length of the partial file, which grows at its end with what arrives, or nil.
  var partByteCount: Int64? { FileStatus.byteCount(of: path + ".httpfs-part") }

  /// Waits for the end and holds it against `expected`.
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
        row.noteWrongDownload()
        Issue.record(
          "wrong bytes: \(comparison.output)\(comparison.error)", sourceLocation: sourceLocation)
      }
    } else {
      #expect(expected != .right, "get fails: \(error)", sourceLocation: sourceLocation)
      #expect(ending == .exited(1), sourceLocation: sourceLocation)
      #expect(!isThere, "a failed get leaves a file", sourceLocation: sourceLocation)
      #expect(!error.isEmpty, "get fails without a word", sourceLocation: sourceLocation)
    }
  }
}
