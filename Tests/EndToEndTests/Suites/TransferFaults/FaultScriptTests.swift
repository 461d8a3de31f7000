import Foundation
import HTTPTransfer
import Testing

/// Whatever a server does, a download is right or it fails, and its accounts are right.
///
/// A failure names the script by its seed; `HTTPFS_FAULT_SEED=N HTTPFS_FAULT_COUNT=1` runs only
/// that script.
extension RealMounts {
  @Suite struct FaultScripts {
    /// The number of scripts that run at a time, each with its own files and resources.
    private static let concurrentCount = 8

    private static func number(_ name: String, default value: UInt64) -> UInt64 {
      ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) } ?? value
    }

    @Test func `a download under random faults is byte-right or fails, and its sums hold`()
      async throws
    {
      let first = Self.number("HTTPFS_FAULT_SEED", default: 1)
      let count = Self.number("HTTPFS_FAULT_COUNT", default: 1000)
      let sandbox = try Sandbox()
      let server = try OriginServer()
      let origin = "http://127.0.0.1:\(server.port)"
      let directory = sandbox.directory
      let client = TransferClient()
      let controlClient = TransferClient()
      var tally = FaultTally()
      var failures: [String] = []
      let start = ContinuousClock.now
      try await withThrowingTaskGroup(
        of: (FaultScript, FaultScriptRun.Ending, [String]).self
      ) { group in
        var seeds = first..<(first + count)
        func addNext() {
          guard let seed = seeds.popFirst() else { return }
          group.addTask {
            let script = FaultScript(seed: seed)
            let run = FaultScriptRun(
              script: script, client: client, controlClient: controlClient, origin: origin,
              directory: directory)
            let (ending, violations) = try await run.run()
            return (script, ending, violations)
          }
        }
        for _ in 0..<Self.concurrentCount { addNext() }
        while let (script, ending, violations) = try await group.next() {
          tally.note(script, ending)
          failures += violations.map { "seed \(script.seed): \($0)\n  \(script)" }
          addNext()
        }
      }
      print("\(count) fault scripts from seed \(first) in \(ContinuousClock.now - start)\n\(tally)")
      for failure in failures.prefix(20) { Issue.record(Comment(rawValue: failure)) }
      #expect(failures.count <= 20, "\(failures.count) violations in all")
      // If all scripts failed, or none met its fault, the test would prove nothing.
      if count >= 1000 {
        #expect(tally.count(of: .succeeded) > 400)
        #expect(tally.count(of: .failed) > 50)
        #expect(tally.count(of: .cancelled) > 50)
        let requests = Dictionary(grouping: try server.requests(), by: \.path).values
        let parallelCount = requests.count { $0.peakConcurrency > 2 }
        print("\(parallelCount) of them over three connections or more")
        #expect(parallelCount > 10)
      }
    }
  }
}
