import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import OriginContent

/// Executes a script, and reports which properties do not hold.
///
/// The script has a transfer under faults, a repetition if the first was cancelled, and a transfer
/// without faults if none has succeeded.
struct FaultScriptRun: Sendable {
  /// The outcome of the transfer under faults.
  enum Ending: String, CaseIterable {
    case succeeded, failed, cancelled
    /// It has delivered the error page, which no response contradicted.
    case misled
  }

  let script: FaultScript
  let client: TransferClient
  /// Talks to the Origin over separate connections, without bytes left by a fault.
  let controlClient: TransferClient
  /// Scheme, host and port of the Origin.
  let origin: String
  /// The directory of the files; every script has its own name.
  let directory: String

  private static let oldContents = Array("what was here before".utf8)
  /// The error page of the Origin's `html-200`.
  private static let errorPage = Array(
    "<!DOCTYPE html><html><body><h1>Something went wrong</h1></body></html>\n".utf8)

  private var filePath: String { "\(directory)/s\(script.seed).bin" }
  private var partPath: String { filePath + ".httpfs-part" }
  private var recordPath: String { partPath + ".record" }

  /// Runs the script.
  ///
  /// - Returns: the outcome, and the violations in words; none if all properties hold.
  func run() async throws -> (ending: Ending, violations: [String]) {
    let request = try makeRequest()
    if script.target == .file, script.replacesFile {
      try Data(Self.oldContents).write(to: URL(fileURLWithPath: filePath))
    }
    var violations: [String] = []
    async let changing: Void = postLaterFault()
    let verbs = TransferAttempt.Verbs(
      cancelAfter: script.cancelAfter, pause: script.pause, takerDelay: script.takerDelay)
    var last = await TransferAttempt(request, client: client, verbs: verbs)
    try await changing
    violations += check(last).map { "first: " + $0 }
    let ending: Ending =
      switch last.outcome {
      case .success(let result): Self.isErrorPage(result.response) ? .misled : .succeeded
      case .failure(let error): error.code == .cancelled ? .cancelled : .failed
      }
    if ending == .failed, script.kind == "none" {
      violations.append("fails without a fault: \(last.error?.reason ?? "")")
    }
    if ending == .cancelled {
      if script.cancelAfter == nil { violations.append("cancelled by nobody") }
      let second = await TransferAttempt(request, client: client)
      violations += (check(second) + checkResumption(of: last, by: second)).map { "second: " + $0 }
      last = second
    }
    if last.error != nil {
      // Remove every remaining fault that could keep a transfer from succeeding.
      let faults = FaultScript.faultParameters.map { ($0, nil as String?) }
      try await control(Dictionary(uniqueKeysWithValues: faults))
      // A busy machine may stall for the second that the scripts allow.
      var patient = request
      patient.stallTimeout = .seconds(20)
      let clean = await TransferAttempt(patient, client: client)
      violations += (check(clean) + checkResumption(of: last, by: clean)).map { "clean: " + $0 }
      if let error = clean.error {
        violations.append("clean: fails without faults: \(error.reason)")
      }
    }
    for path in [filePath, partPath, recordPath] { unlink(path) }
    return (ending, violations)
  }

  private func makeRequest() throws -> Request {
    let destination: Destination =
      switch script.target {
      case .file: .file(filePath, existing: .replace)
      case .memory: .memory()
      case .stream: .stream(bufferByteCount: script.streamBufferByteCount)
      }
    var request = Request(url: try RemoteURL(origin + script.resource), destination: destination)
    request.connections = script.connections
    request.range = script.range
    request.retries = 4
    request.stallTimeout = .seconds(1)
    request.retryPolicy = RetryPolicy(
      base: .milliseconds(1), ceiling: .milliseconds(5), retryAfterCeiling: .milliseconds(20))
    return request
  }

  // MARK: The Origin

  private func postLaterFault() async throws {
    guard let later = script.later else { return }
    try await Task.sleep(for: later.after)
    try await control(later.parameters)
  }

  /// Sets parameters of the script's resources; nil removes one.
  private func control(_ parameters: [String: String?]) async throws {
    let values = parameters.mapValues { $0 ?? NSNull() as Any }
    for path in [script.path, "/data/faults/beyond/s\(script.seed).bin"] {
      let message = try JSONSerialization.data(
        withJSONObject: ["match": path, "parameters": values])
      var request = Request(url: try RemoteURL(origin + "/control"), method: .post)
      request.body = .bytes(Array(message), contentType: "application/json")
      _ = try await controlClient.transfer(request).result()
    }
  }

  // MARK: Properties

  /// Checks that the bytes are right, or that the transfer failed and the file is unchanged.
  private func check(_ attempt: TransferAttempt) -> [String] {
    var violations = attempt.violations
    switch attempt.outcome {
    case .success(let result):
      let bytes = script.target == .file ? contents(filePath) : attempt.body
      if let bytes {
        if let mismatch = mismatch(bytes, result.response) { violations.append(mismatch) }
        if Int64(bytes.count) != result.byteCount {
          violations.append("\(bytes.count) bytes, the result says \(result.byteCount)")
        }
      } else {
        violations.append("succeeded without a file")
      }
      for path in [partPath, recordPath] where contents(path) != nil {
        violations.append("\(path) is left behind")
      }
    case .failure(let error):
      if script.target == .file {
        let before = script.replacesFile ? Self.oldContents : nil
        if contents(filePath) != before { violations.append("failed, and changed the file") }
        if attempt.ledger.present > 0, error.code != .destination,
          contents(partPath) == nil || contents(recordPath) == nil
        {
          violations.append("failed with \(attempt.ledger.present) bytes, and kept none of them")
        }
      }
      if error.code == .destinationInUse { violations.append("the destination is in use") }
    }
    return violations
  }

  /// The error in the bytes; nil if they match the response's head.
  private func mismatch(_ bytes: [UInt8], _ head: HTTPResponse) -> String? {
    if Self.isErrorPage(head) {
      // A server that presents this page as the file is trusted unless another response contradicts
      // it.
      let page = Self.errorPage
      let range = (script.range ?? 0..<Int64(page.count)).clamped(to: 0..<Int64(page.count))
      return bytes == Array(page[Int(range.lowerBound)..<Int(range.upperBound)])
        ? nil : "neither the error page nor the file"
    }
    guard bytes.count == script.wanted.count else {
      return "\(bytes.count) bytes of \(script.wanted.count)"
    }
    var versions: [UInt64] = [1, 2]
    if let tag = head.headerFields[.eTag], let named = tag.firstMatch(of: /-v([0-9]+)/)?.1 {
      versions = [UInt64(named) ?? 0]
    }
    let mismatches = versions.map { version in
      bytes.withUnsafeBytes {
        OriginContent.firstMismatch(
          in: $0, seed: script.contentSeed, version: version, offset: script.wanted.lowerBound)
      }
    }
    if mismatches.contains(nil) { return nil }
    return "wrong from byte \(mismatches.compactMap(\.self).max() ?? 0) on, versions \(versions)"
  }

  private static func isErrorPage(_ head: HTTPResponse) -> Bool {
    head.headerFields[.contentType]?.hasPrefix("text/html") == true
  }

  /// Checks that a transfer resumes where the previous one ended, or reports why not.
  private func checkResumption(
    of first: TransferAttempt, by second: TransferAttempt
  ) -> [String] {
    guard script.target == .file, first.ledger.present > 0, second.ledger.hasStarted else {
      return []
    }
    let resumed = second.ledger.firstResumed ?? 0
    if resumed == first.ledger.present { return [] }
    if resumed == 0, !second.ledger.restartReasons.isEmpty { return [] }
    return ["resumes \(resumed) bytes of \(first.ledger.present) without saying why"]
  }

  private func contents(_ path: String) -> [UInt8]? {
    FileManager.default.contents(atPath: path).map { Array($0) }
  }
}
