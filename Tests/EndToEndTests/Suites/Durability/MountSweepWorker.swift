import Foundation
import Glibc

/// Reads 4 MiB through a mount whose cache fails, then again from a mount whose cache works.
///
/// There are two files: the cache holds a committed part of one, and does not know the other.
final class MountSweepWorker: CallSweepWorker {
  private static let length: Int64 = (2 << 20) + 12_345
  /// The number of bytes of the first file to read before failures begin.
  ///
  /// It is a quarter of the file, which the read-ahead doubles.
  private static let preparedByteCount = 512 << 10
  /// The bytes that may be fetched although they were present: the first range of a file, its last
  /// block.
  private static let slack: Int64 = 64 << 10

  private let sandbox: Sandbox
  private let origin: OriginServer
  private let urls: [String]
  private let names = ["warm.bin", "cold.bin"]
  private let digests: [String]
  private let preparedCache: String
  /// The path of the first file's record in the prepared cache.
  private let preparedRecord: String
  /// The bytes of the first file that the prepared cache holds, committed.
  private let preparedCount: Int64

  init(seed: UInt64) throws {
    sandbox = try Sandbox()
    origin = try OriginServer()
    let origin = origin
    urls = names.enumerated().map { index, name in
      origin.url(name, length: Self.length, seed: seed + UInt64(index))
    }
    digests = names.indices.map { index in
      Digest.ofContent(seed: seed + UInt64(index), byteCount: Self.length)
    }
    // Limit the rate: otherwise all of it would arrive before the file is closed.
    try origin.control("*/warm.bin", ["total-rate": "\(2 << 20)"])
    let mount = try sandbox.mount(urls: urls, cache: "prepared")
    let file = try HeldFile(mount.path(names[0]))
    _ = try file.read(at: 0, Self.preparedByteCount)
    file.close()
    try mount.unmount()
    try origin.clearControl()
    preparedCache = mount.cacheDirectory
    let records = FileStatus.files(named: "record", below: preparedCache)
    guard records.count == 1 else { throw HarnessError("records: \(records)") }
    preparedRecord = String(records[0].dropFirst(preparedCache.count + 1))
    preparedCount = try CacheRecord(path: records[0]).committedByteCount
    guard preparedCount >= Int64(Self.preparedByteCount), preparedCount < Self.length else {
      throw HarnessError("\(preparedCount) bytes are committed")
    }
  }

  func step(_ sweep: CallSweep, number: Int) throws -> CallSweep.Step {
    let cache = sandbox.path("cache-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: cache) }
    try output(of: ["cp", "-a", preparedCache, cache])
    let failing = try FailingCalls(below: cache, in: sandbox)
    try failing.fail(sweep.plan(failing: number))
    var violations = try readWhileFailing(failing, sweep)
    let calls = try failing.calls()
    // The network determines the order of pieces: a call of this step may not occur in the next.
    let hasFailed = calls.contains { $0.position >= number }
    violations += Self.violationsOfSyncs(in: calls)
    violations += try readAfterwards(cache, calls, sweep)
    if !violations.isEmpty {
      let failed = calls.filter { $0.position >= number }.prefix(3)
      violations.append("failed: " + failed.map { "\($0.name) \($0.path)" }.joined(separator: ", "))
    }
    return CallSweep.Step(hasFailed: hasFailed, violations: violations)
  }

  private func readWhileFailing(_ failing: FailingCalls, _ sweep: CallSweep) throws -> [String] {
    var violations: [String] = []
    try origin.clearLog()
    let mount: Mount
    do {
      mount = try sandbox.mount(urls: urls, failing: failing)
    } catch let error as HarnessError {
      // Without its directory and its lock there is no cache: the mount is refused with a message.
      if sweep.isHarmless || !error.description.contains("not mounted (exited(1))")
        || !error.description.contains("httpfs: ") || !sweep.isExplained(by: error.description)
      {
        violations.append(error.description)
      }
      return violations
    }
    for (name, digest) in zip(names, digests) {
      let result = try run(["sha256sum", mount.path(name)], within: .seconds(20))
      if !result.succeeded {
        violations.append("\(name) cannot be read: \(result.error)")
      } else if result.output.prefix(64) != digest {
        violations.append("WRONG BYTES in \(name)")
      }
    }
    if !mount.process.isRunning {
      violations.append("httpfs has died: \(mount.process.standardError)")
      return violations
    }
    let isCached = try mount.status().files.allSatisfy {
      $0.cachedByteCount == Self.length || (sweep.isLackOfSpace && $0.cachedByteCount == 0)
    }
    // A file size limit concerns only that file, whose status reports it.
    let isSaid =
      try mount.cacheFailure() != nil
      || sweep.errno == EFBIG && mount.status().files.contains { $0.lastError != nil }
    if !isCached, !isSaid {
      violations.append(".status.json does not say that the cache fails")
    }
    if !isCached, sweep.isHarmless { violations.append("not everything is cached") }
    let ending = try mount.unmount()
    if ending != .exited(0) { violations.append("httpfs ended with \(ending)") }
    let fetched = try origin.requests().bodyByteCount
    if fetched > 4 * Self.length { violations.append("\(fetched) bytes were fetched") }
    return violations
  }

  private func readAfterwards(
    _ cache: String, _ calls: [FailingCalls.Call], _ sweep: CallSweep
  ) throws -> [String] {
    var violations: [String] = []
    // A failed sync loses all bytes that no COMMIT covers; other failures lose only the failed
    // bytes.
    let hasSyncFailed = calls.contains { $0.name.hasSuffix("sync") && $0.outcome != .done }
    var kept: Int64 = 0
    for path in FileStatus.files(named: "record", below: cache) {
      guard let record = try? CacheRecord(path: path) else { continue }
      kept += hasSyncFailed ? record.committedByteCount : record.byteCount
    }
    let isEvicted =
      sweep.isLackOfSpace && FileStatus.byteCount(of: "\(cache)/\(preparedRecord)") == nil
    if !isEvicted { kept = max(kept, preparedCount) }
    try origin.clearLog()
    let name = (cache as NSString).lastPathComponent
    let mount = try sandbox.mount(urls: urls, cache: name)
    for (name, digest) in zip(names, digests) where try mount.sha256(name) != digest {
      violations.append("WRONG BYTES in \(name) later")
    }
    if let failure = try mount.cacheFailure() {
      violations.append("the cache that works is said to fail: \(failure)")
    }
    if try mount.status().files.contains(where: { $0.cachedByteCount != Self.length }) {
      violations.append("not everything is cached later")
    }
    try mount.unmount()
    let fetched = try origin.requests().bodyByteCount
    let allowed = 2 * Self.length - kept + Self.slack
    if fetched > allowed {
      violations.append("\(fetched) bytes are fetched later, of \(kept) that were kept")
    }
    return violations
  }

  /// Row 48: a failed sync is never retried on the same file.
  ///
  /// Names of data files are never reused, so a name identifies a file.
  private static func violationsOfSyncs(in calls: [FailingCalls.Call]) -> [String] {
    var failed: Set<String> = []
    var violations: [String] = []
    for call in calls where call.name.hasSuffix("sync") && call.fileName.hasPrefix("data-") {
      if failed.contains(call.path) {
        violations.append("\(call.name) of \(call.path) is tried again after it has failed")
      }
      if case .failed(let number) = call.outcome, number != EINTR { failed.insert(call.path) }
    }
    return violations
  }
}
