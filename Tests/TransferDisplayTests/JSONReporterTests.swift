import Foundation
import SeededRandom
import Testing
import TransferDisplay

@Suite struct JSONReporterTests {
  /// The objects of lines that each end with a line feed.
  private func objects(_ bytes: [UInt8]) throws -> [[String: Any]] {
    #expect(bytes.isEmpty || bytes.last == UInt8(ascii: "\n"))
    return try bytes.split(separator: UInt8(ascii: "\n")).map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
    }
  }

  @Test func aFileIsALineWithAllItsFigures() {
    var reporter = JSONReporter()
    let bytes = reporter.progress(for: DisplaySnapshot(items: [bigFile], elapsed: 1))
    let line = String(decoding: bytes, as: UTF8.self)
    #expect(
      line == #"{"event":"progress","id":1,"name":"big.iso","url":"http://example.com/big.iso","#
        + #""state":"running","reason":null,"error":null,"status":null,"received":461373440,"#
        + #""total":1073741824,"resumed":0,"speed":102970163.200,"eta":6.000,"elapsed":4.500,"connections":16}"#
        + "\n")
  }

  @Test func aStateIsToldAtOnceAndProgressOnceASecond() throws {
    var reporter = JSONReporter()
    var states: [String] = []
    for tenth in 0..<50 {
      let item = bigFile.with {
        $0.transferredByteCount = Int64(tenth)
        if tenth == 25 { $0.state = .waiting(reason: "HTTP 503") }
        if tenth >= 49 { $0.state = .finished }
      }
      let snapshot = DisplaySnapshot(items: [item], elapsed: Double(tenth) / 10)
      states += try objects(reporter.progress(for: snapshot)).compactMap { $0["state"] as? String }
    }
    // At 0, 1, 2, 2.5 (waiting), 2.6, 3.6, 4.6 and 4.9 s.
    #expect(
      states == [
        "running", "running", "running", "waiting", "running", "running", "running", "finished",
      ]
    )
    let queued = DisplaySnapshot(items: [DisplayItem(id: 9, name: "q")], elapsed: 10)
    #expect(try objects(reporter.progress(for: queued)).count == 1)
    var later = queued
    later.elapsed = 100
    #expect(reporter.progress(for: later) == [])
  }

  @Test func theSummaryHasTheCountsAndTheMeanSpeed() throws {
    let items = [
      bigFile.with {
        $0.state = .finished
        $0.resumedByteCount = 40 * mebibyte
      },
      DisplayItem(id: 2, name: "b", state: .failed("HTTP 404")),
      DisplayItem(id: 3, name: "c", state: .cancelled),
      DisplayItem(id: 4, name: "d", state: .paused),
    ]
    let snapshot = DisplaySnapshot(items: items, elapsed: 4, isUpload: true)
    let summary = try #require(try objects(JSONReporter.summary(of: snapshot)).first)
    #expect(summary["event"] as? String == "summary")
    #expect(summary["finished"] as? Int == 1)
    #expect(summary["failed"] as? Int == 1)
    #expect(summary["cancelled"] as? Int == 1)
    #expect(summary["unfinished"] as? Int == 1)
    #expect(summary["sent"] as? Int64 == 440 * mebibyte)
    #expect(summary["received"] == nil)
    #expect(summary["total"] is NSNull)
    #expect(summary["resumed"] as? Int64 == 40 * mebibyte)
    #expect(summary["speed"] as? Double == Double(100 * mebibyte))
  }

  @Test(arguments: 0..<100)
  func whateverTheNamesEachLineIsJSONThatHoldsThem(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let snapshot = DisplaySnapshot.random(using: &random)
    var reporter = JSONReporter()
    let bytes = reporter.progress(for: snapshot)
    let lines = try objects(bytes)
    #expect(lines.count == snapshot.items.count)
    for (line, item) in zip(lines, snapshot.items) {
      #expect(line["name"] as? String == item.name)
      #expect(line["received"] as? Int64 == item.transferredByteCount)
    }
    #expect(bytes.allSatisfy { $0 >= 0x20 || $0 == UInt8(ascii: "\n") })
    #expect(try objects(JSONReporter.summary(of: snapshot)).count == 1)
  }
}
