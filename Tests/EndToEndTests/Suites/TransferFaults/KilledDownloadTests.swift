import Foundation
import Glibc
import SeededRandom
import Synchronization
import Testing

/// A killed download resumes where it was, or restarts and reports that.
extension RealMounts {
  @Suite struct KilledDownloads {
    private static let length: Int64 = 40 << 20
    /// Bytes per second over all connections of a download, which lasts more than half a second.
    private static let rate: Int64 = 64 << 20
    private static let killCount = 100
    /// The number of downloads that run at a time, each from its own Origin.
    private static let concurrentCount = 4
    /// The received bytes that a kill may cost, which is the same as for a crash of the mount.
    ///
    /// These are the bytes that both runs have received. What one run receives twice does not count:
    /// a request that another one shortens may leave some MiB in its socket.
    ///
    /// What lies in sockets does not count: the process has not received it. While the disk is busy,
    /// 32 connections may hold more there than all buffers of the process.
    private static let maximumLoss: Int64 = 16 << 20

    /// The header field of a second run's requests.
    private static let secondRun = "x-second-run"

    /// The moment of the kill: on every machine, most downloads have stored some bytes by then.
    private enum Moment: Sendable {
      /// A duration after its start.
      case after(Duration)
      /// The moment at which a number of bytes is stored.
      case stored(Int64)
    }

    /// The results of one killed download and its continuation.
    private struct Outcome {
      /// Bytes that the process had received, and that were sent again; nil if the remote file has changed in between.
      var lostByteCount: Int64?
      /// Whether it restarted and reported that.
      var startsOver = false
      var violations: [String] = []
    }

    @Test func `a download that is killed at any moment goes on, and loses at most 16 MiB`() throws
    {
      let sandbox = try Sandbox()
      let directory = sandbox.directory
      let results = Mutex<[Result<[Outcome], any Error>]>([])
      DispatchQueue.concurrentPerform(iterations: Self.concurrentCount) { worker in
        let result = Result<[Outcome], any Error> {
          try Self.outcomes(
            of: Self.killCount / Self.concurrentCount, worker: worker, in: directory)
        }
        results.withLock { $0.append(result) }
      }
      let outcomes = try results.withLock { try $0.flatMap { try $0.get() } }
      #expect(outcomes.count == Self.killCount)
      for violation in outcomes.flatMap(\.violations) { Issue.record(Comment(rawValue: violation)) }
      let losses = outcomes.compactMap(\.lostByteCount)
      let mean = Double(losses.reduce(0, +)) / Double(max(1, losses.count))
      print(
        """
        \(outcomes.count) kills: \(mean / 1_048_576) MiB lost on average, \
        \(Double(losses.max() ?? 0) / 1_048_576) MiB at most
        """)
      #expect(losses.count > Self.killCount / 2)
      #expect(outcomes.count(where: \.startsOver) > Self.killCount / 12)
    }

    /// Kills `count` downloads, one after the other.
    private static func outcomes(
      of count: Int, worker: Int, in directory: String
    ) throws -> [Outcome] {
      let origin = try OriginServer()
      var random = SeededGenerator(seed: UInt64(worker) + 9000)
      var outcomes: [Outcome] = []
      var index = 0
      // A download that ended before its moment does not count.
      while outcomes.count < count, index < 3 * count {
        let seed = UInt64(worker * 1000 + index)
        let changes = index % 6 == 5
        // Include the first moments. A changed version costs bytes only if the first version has
        // been recorded.
        let place = Int64.random(
          in: changes ? 2 << 20..<length * 3 / 4 : -length / 5..<length, using: &random)
        let moment: Moment =
          place >= 0
          ? .stored(place) : .after(.milliseconds(Int.random(in: 0...150, using: &random)))
        if let outcome = try outcome(
          seed: seed, killedAt: moment, changes: changes, origin, in: directory)
        {
          outcomes.append(outcome)
        }
        index += 1
      }
      return outcomes
    }

    /// One download, killed and resumed; nil if it ended before the kill.
    private static func outcome(
      seed: UInt64, killedAt moment: Moment, changes: Bool, _ origin: OriginServer,
      in directory: String
    ) throws -> Outcome? {
      let name = "k\(seed).bin"
      let path = "\(directory)/\(name)"
      defer { for suffix in ["", ".httpfs-part", ".httpfs-part.record"] { unlink(path + suffix) } }
      let url = origin.url(name, length: length, seed: seed, query: "total-rate=\(rate)")
      let command = [try Products.httpfs, "get", url, "-o", path]
      let first = try ChildProcess(command)
      switch moment {
      case .after(let time): pause(for: time)
      case .stored(let byteCount):
        _ = Deadline(after: .seconds(120)).wait(every: .milliseconds(1)) {
          allocatedByteCount(of: path + ".httpfs-part") >= byteCount || !first.isRunning
        }
      }
      guard first.isRunning else { return nil }
      // Neither side adds bytes during the count.
      origin.signal(SIGSTOP)
      defer { origin.signal(SIGCONT) }
      first.signal(SIGSTOP)
      let unread = try SocketQueues.unreadByteCount(port: origin.port)
      first.kill()
      origin.signal(SIGCONT)
      // It may have ended at that very moment.
      guard first.ending == .signalled(SIGKILL), FileStatus.byteCount(of: path) == nil else {
        return nil
      }
      var outcome = Outcome()
      func violated(_ text: String) {
        outcome.violations.append("seed \(seed), killed \(moment): \(text)")
      }
      let storedByteCount = allocatedByteCount(of: path + ".httpfs-part")
      if changes { try origin.control("*/\(name)", ["version": "2"]) }
      let second = try run(command + ["--header", "\(secondRun): 1"], within: .seconds(120))
      guard second.succeeded else {
        violated("\(second.ending): \(second.error)")
        return outcome
      }
      let version: UInt64 = changes ? 2 : 1
      if try digest(ofFile: path)
        != Digest.ofContent(seed: seed, version: version, byteCount: length)
      {
        violated("the file is not version \(version)")
      }
      for suffix in [".httpfs-part", ".httpfs-part.record", ".httpfs-part.record-new"]
      where FileStatus.byteCount(of: path + suffix) != nil {
        violated("\(suffix) is left behind")
      }
      let startsOver = second.error.contains("starting over")
      outcome.startsOver = startsOver
      if changes {
        // No report is needed for bytes whose record was not yet written.
        if storedByteCount > 1 << 20, !startsOver {
          violated("begins anew silently: \(second.error)")
        }
        return outcome
      }
      // A download with an empty partial file may have been killed before it had a record.
      if startsOver, storedByteCount > 0 {
        violated("begins anew without a reason: \(second.error)")
      }
      let requests = try origin.requests().of(path: "/data/\(name)")
      let isOfSecond = { (request: LoggedRequest) in request.fields[secondRun] != nil }
      let firstRequests = requests.filter { !isOfSecond($0) }
      let secondByteCount = requests.filter(isOfSecond).distinctBodyByteCount
      let repeated = firstRequests.distinctBodyByteCount + secondByteCount - length
      // What lay in sockets may be bytes that the first run had already received.
      let lost = max(0, repeated - unread)
      if repeated < 0 || lost > maximumLoss {
        violated(
          """
          lost \(lost) bytes; \(unread) more lay in sockets; the first run received \
          \(firstRequests.bodyByteCount) in \(firstRequests.count) requests, the second \
          \(secondByteCount)
          """)
      }
      outcome.lostByteCount = lost
      return outcome
    }

    /// The bytes of a sparse file that are on the disk.
    private static func allocatedByteCount(of path: String) -> Int64 {
      var status = stat()
      return stat(path, &status) == 0 ? Int64(status.st_blocks) * 512 : 0
    }

    private static func digest(ofFile path: String) throws -> String {
      let data = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
      return Digest.hex { update in data.withUnsafeBytes { update($0) } }
    }
  }
}
