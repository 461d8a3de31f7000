import Foundation
import Glibc

/// Downloads 4 MiB to a directory that fails, then resumes in a directory that works.
final class GetSweepWorker: CallSweepWorker {
  private static let length: Int64 = (4 << 20) + 321
  /// The bytes that may be fetched although they were present.
  private static let slack: Int64 = 64 << 10
  private static let name = "a.bin"

  private let sandbox: Sandbox
  private let origin: OriginServer
  private let url: String
  private let digest: String

  init(seed: UInt64) throws {
    sandbox = try Sandbox()
    origin = try OriginServer()
    url = origin.url(Self.name, length: Self.length, seed: seed)
    digest = Digest.ofContent(seed: seed, byteCount: Self.length)
  }

  func step(_ sweep: CallSweep, number: Int) throws -> CallSweep.Step {
    let directory = try sandbox.makeDirectory("get-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let file = "\(directory)/\(Self.name)"
    let command = [try Products.httpfs, "get", url, "-o", file]
    let failing = try FailingCalls(below: directory, in: sandbox)
    try failing.fail(sweep.plan(failing: number))
    let first = try run(try failing.launcher + command, within: .seconds(20))
    let calls = try failing.calls()
    var violations: [String] = []
    if first.succeeded {
      if try digestOfFile(file) != digest { violations.append("WRONG BYTES after success") }
    } else {
      if !first.ending.isTransferFailure || !sweep.isExplained(by: first.error) {
        violations.append("\(first.ending): \(first.error)")
      }
      if sweep.isHarmless { violations.append("fails: \(first.error)") }
    }
    if let found = FileStatus.byteCount(of: file), found != Self.length {
      violations.append("a file of \(found) bytes has the name of the whole one")
    }
    violations += try goOn(command, file, calls, isDone: first.succeeded)
    let hasFailed = calls.contains { $0.position >= number }
    if !violations.isEmpty {
      let failed = calls.filter { $0.position >= number }.prefix(3)
      violations.append("failed: " + failed.map { "\($0.name) \($0.path)" }.joined(separator: ", "))
    }
    return CallSweep.Step(hasFailed: hasFailed, violations: violations)
  }

  /// Repeats the command without failures.
  private func goOn(
    _ command: [String], _ file: String, _ calls: [FailingCalls.Call], isDone: Bool
  ) throws -> [String] {
    var violations: [String] = []
    let hasSyncFailed = calls.contains { $0.name.hasSuffix("sync") && $0.outcome != .done }
    var kept: Int64 = 0
    if !isDone, let record = try? CacheRecord(path: file + ".httpfs-part.record") {
      kept = hasSyncFailed ? record.committedByteCount : record.byteCount
      if hasSyncFailed, record.byteCount > record.committedByteCount {
        violations.append("after a failed sync the record claims what no COMMIT covers")
      }
    }
    // A rename that took effect although it reported a failure: the file exists, and is fetched
    // again.
    if FileStatus.byteCount(of: file) == Self.length { kept = 0 }
    try origin.clearLog()
    let second = try run(command, within: .seconds(20))
    if !second.succeeded {
      violations.append("later: \(second.ending): \(second.error)")
    } else if try digestOfFile(file) != digest {
      violations.append("WRONG BYTES later")
    }
    for suffix in [".httpfs-part", ".httpfs-part.record", ".httpfs-part.record-new"]
    where FileStatus.byteCount(of: file + suffix) != nil {
      violations.append("\(suffix) is left behind")
    }
    if !isDone {
      let fetched = try origin.requests().bodyByteCount
      if fetched > Self.length - kept + Self.slack {
        violations.append("\(fetched) bytes are fetched later, of \(kept) that were kept")
      }
    }
    return violations
  }

  private func digestOfFile(_ path: String) throws -> String {
    guard FileStatus.byteCount(of: path) != nil else { return "no file" }
    return try String(output(of: ["sha256sum", path]).prefix(64))
  }
}
