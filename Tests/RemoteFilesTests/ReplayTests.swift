import AccessTrace
import Foundation
import RemoteFiles
import Testing

/// The planner under access patterns: synthetic ones, and recordings of real tools.
///
/// The recordings are from `httpfs mount --trace` (kernel 6.18, read-ahead of 512 KiB).
@Suite struct ReplayTests {
  private static let mebibyte: Int64 = 1 << 20

  /// A program that opens a file of `length` bytes and reads `ranges` one after another.
  ///
  /// Each read begins `pause` seconds after the previous one.
  private func trace(
    length: Int64, _ ranges: [Range<Int64>], pause: Double = 0
  ) -> AccessTrace {
    var time = 0.0
    var records = [
      TraceRecord(start: 0, end: 0, handle: 1, operation: .open(name: "file", length: length))
    ]
    for range in ranges {
      time += pause
      records.append(
        TraceRecord(
          start: time, end: time, handle: 1,
          operation: .read(
            offset: range.lowerBound, byteCount: range.upperBound - range.lowerBound)))
    }
    return AccessTrace(records: records)
  }

  private func figures(
    _ trace: AccessTrace, _ network: ReplayNetwork = ReplayNetwork(), connections: Int? = nil
  ) -> ReplayFigures {
    var simulation = ReplaySimulation(trace, over: network, connections: connections)
    let figures = simulation.run()
    #expect(figures.unansweredCount == 0)
    return figures
  }

  private func sequential(_ length: Int64, by step: Int64 = 131_072) -> [Range<Int64>] {
    stride(from: 0, to: length, by: Int(step)).map { $0..<min(length, $0 + step) }
  }

  @Test("A replay is the same each time")
  func deterministic() {
    let trace = trace(length: 64 << 20, sequential(64 << 20))
    #expect(figures(trace) == figures(trace))
  }

  @Test("A small read at the start comes with the first answer: two round trips, one request")
  func firstRead() {
    let result = figures(trace(length: 1 << 30, [0..<4096]))
    #expect(result.requestCount == 1)
    #expect(result.fetchedByteCount == 16 << 10)
    #expect((0.1..<0.105).contains(result.elapsedSeconds))
  }

  @Test("A read in the middle costs one round trip more")
  func middleRead() {
    let result = figures(trace(length: 1 << 30, [1 << 29..<(1 << 29) + 4096]))
    #expect(result.requestCount == 2)
    #expect((0.15..<0.155).contains(result.elapsedSeconds))
  }

  @Test("What is read in order is fetched once, and then as fast as the line is")
  func sequentialRead() {
    let length = 256 * Self.mebibyte
    let result = figures(trace(length: length, sequential(length)))
    #expect(result.fetchedByteCount == length)
    // Two round trips for the first answer, one for the first read, and some until the bandwidth is
    // used.
    let least = Double(length) / ReplayNetwork().totalRate
    #expect(result.elapsedSeconds < least + 9 * ReplayNetwork().roundTrip)
  }

  @Test("Connections that are slow each are used together")
  func throttledConnections() {
    let length = 256 * Self.mebibyte
    let network = ReplayNetwork(connectionRate: 10e6, totalRate: 1e9)
    let adaptive = figures(trace(length: length, sequential(length)), network)
    let single = figures(trace(length: length, sequential(length)), network, connections: 1)
    #expect(adaptive.fetchedByteCount == length)
    // As fast as 16 connections from the first byte on would be.
    #expect(single.elapsedSeconds > 15 * adaptive.elapsedSeconds)
  }

  @Test("Random reads wait a round trip each, and fetch what is asked for")
  func randomReads() {
    let ranges = (0..<100).map { index -> Range<Int64> in
      let start = Int64(index) * 7919 % 1000 * Self.mebibyte
      return start..<start + 4096
    }
    let result = figures(trace(length: 1 << 30, ranges))
    #expect(result.fetchedByteCount <= 2 * result.wantedByteCount)
    #expect(result.waitedSeconds < 0.051 * Double(result.waitCount + 1))
  }

  @Test("Strides are read ahead of: an eighth of the round trips, and no byte too many")
  func strides() {
    let ranges = (0..<256).map { Int64($0) * Self.mebibyte }.map { $0..<$0 + 65_536 }
    let result = figures(trace(length: 256 * Self.mebibyte, ranges))
    #expect(result.fetchedByteCount <= result.wantedByteCount * 11 / 10)
    #expect(result.elapsedSeconds < 256 * 0.05 / 8)
  }

  @Test("A file read from its end, block by block, is read ahead of")
  func backward() {
    let length = 256 * Self.mebibyte
    let blocks = stride(from: length - Self.mebibyte, through: 0, by: Int(-Self.mebibyte))
    let ranges = blocks.flatMap { block in
      (0..<8).map { block + $0 * 131_072..<block + ($0 + 1) * 131_072 }
    }
    let result = figures(trace(length: length, ranges))
    #expect(result.fetchedByteCount <= length * 11 / 10)
    #expect(result.elapsedSeconds < 2 * Double(length) / ReplayNetwork().totalRate)
  }

  @Test("Pauses of the program are kept")
  func pauses() {
    let ranges = (0..<10).map { Int64($0) * 64 * Self.mebibyte }.map { $0..<$0 + 4096 }
    let hurried = figures(trace(length: 1 << 30, ranges))
    let slow = figures(trace(length: 1 << 30, ranges, pause: 1))
    #expect(slow.elapsedSeconds > hurried.elapsedSeconds + 9)
    #expect(slow.requestCount == hurried.requestCount)
  }

  // MARK: Recorded tools

  /// The maximum cost of a tool at 50 ms and 1 Gbit/s.
  struct Budget: Sendable, CustomTestStringConvertible {
    let tool: String
    let requests: Int
    /// The number of bytes fetched for each byte that was read.
    let amplification: Double
    /// Seconds from the first operation to the end of the last, in excess of those of the program
    /// itself.
    let seconds: Double

    var testDescription: String { tool }
  }

  @Test(
    "A recorded tool costs no more than it did",
    arguments: [
      Budget(tool: "ffmpeg-seek", requests: 5, amplification: 1.8, seconds: 0.35),
      Budget(tool: "ffprobe", requests: 3, amplification: 1, seconds: 0.25),
      Budget(tool: "file", requests: 32, amplification: 1.5, seconds: 2.1),
      Budget(tool: "git-verify-pack", requests: 9, amplification: 1.05, seconds: 0.5),
      Budget(tool: "grep", requests: 2, amplification: 1.05, seconds: 0.2),
      Budget(tool: "python-seek", requests: 64, amplification: 1.1, seconds: 3.4),
      Budget(tool: "sha256", requests: 12, amplification: 1, seconds: 0.75),
      Budget(tool: "sqlite-point", requests: 8, amplification: 1.9, seconds: 0.45),
      Budget(tool: "sqlite-scan", requests: 14, amplification: 1.7, seconds: 0.55),
      Budget(tool: "tail", requests: 2, amplification: 3.6, seconds: 0.17),
      Budget(tool: "tar-extract", requests: 600, amplification: 1.7, seconds: 5.6),
      Budget(tool: "tar-list", requests: 600, amplification: 1.7, seconds: 5.6),
      Budget(tool: "unzip-list", requests: 4, amplification: 1.6, seconds: 0.3),
      Budget(tool: "unzip-one", requests: 9, amplification: 1.35, seconds: 0.5),
    ])
  func recordedTool(budget: Budget) throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appending(path: "Traces/\(budget.tool).trace")
    let result = figures(try AccessTrace(text: Array(Data(contentsOf: file))))
    #expect(result.readCount > 0)
    #expect(result.requestCount <= budget.requests)
    #expect(
      Double(result.fetchedByteCount) <= budget.amplification * Double(result.wantedByteCount))
    #expect(result.elapsedSeconds <= budget.seconds)
  }
}
