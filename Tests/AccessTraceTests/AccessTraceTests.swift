import AccessTrace
import SeededRandom
import Testing

@Suite struct AccessTraceTests {
  private static let records = [
    TraceRecord(
      start: 0, end: 0.05, handle: 1, operation: .open(name: "a b/ü.zip", length: 1 << 40)),
    TraceRecord(start: 0.05, end: 0.050001, handle: 2, operation: .open(name: "x", length: nil)),
    TraceRecord(start: 1.25, end: 2, handle: 1, operation: .read(offset: 4096, byteCount: 131_072)),
    TraceRecord(start: 12_345.678901, end: 12_345.678901, handle: 1, operation: .close),
  ]

  private func parse(_ text: String) throws -> AccessTrace {
    try AccessTrace(text: Array(text.utf8))
  }

  @Test("What is written is read again")
  func roundTrip() throws {
    let text = AccessTrace.heading + Self.records.map(\.line).joined()
    #expect(try parse(text).records == Self.records)
    #expect(try parse(text + "# a comment\n\n").records == Self.records)
    let pastTheEnd = try parse(AccessTrace.heading + "0\t1\tread\t1\t9223372036854775807\t0\t\n")
    #expect(pastTheEnd.records.map(\.operation) == [.read(offset: 1 << 60, byteCount: 0)])
    #expect(text.contains("12345.678901\t12345.678901\tclose\t1\t\t\t\n"))
  }

  @Test(
    "A line that is no record is named by its number",
    arguments: [
      "0\t1\tread\t1\t0\t4096", "0\t1\tread\t1\t-1\t4096\t", "0\t1\tread\t1\t0\tx\t",
      "1\t0\tclose\t1\t\t\t", "x\t1\tclose\t1\t\t\t", "0\tnan\tclose\t1\t\t\t",
      "0\t1\tclose\t-1\t\t\t", "0\t1\tfly\t1\t\t\t", "0\t1\topen\t1\t\t5\t",
      "0\t1\topen\t1\t\t-5\tname", "0\t1e300\tclose\t1\t\t\t",
      "0\t1\tread\t1\t9223372036854775807\t1\t",
      // Numbers whose sums would not fit in 64 bits.
      "0\t1\tread\t1\t0\t268435457\t", "0\t1\tread\t1\t1152921504606846977\t1\t",
      "0\t1\topen\t1\t\t1152921504606846977\tname",
    ])
  func malformed(line: String) {
    let error = #expect(throws: AccessTrace.ParseError.self) {
      try parse(AccessTrace.heading + Self.records[0].line + line + "\n")
    }
    #expect(error?.line == 3)
  }

  @Test("A text of something else is refused")
  func otherText() {
    for text in ["", "0\t1\tclose\t1\t\t\t\n", "# httpfs access trace 2\n"] {
      #expect(throws: AccessTrace.ParseError.self) { try parse(text) }
    }
  }

  @Test("Mutated traces are read or refused")
  func mutations() {
    let good = Array((AccessTrace.heading + Self.records.map(\.line).joined()).utf8)
    var random = SeededGenerator(seed: 1)
    var readCount = 0
    for _ in 0..<5000 {
      var bytes = good
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        bytes[Int.random(in: 24..<bytes.count, using: &random)] = .random(
          in: 0...255, using: &random)
      }
      if (try? AccessTrace(text: bytes)) != nil { readCount += 1 }
    }
    #expect((1..<5000).contains(readCount))
  }

  @Test func fiveMillionOperationsAreReadAndNoMore() throws {
    let line = "0\t0\tclose\t1\t\t\t\n"
    let lines = String(repeating: line, count: AccessTrace.maximumRecordCount)
    let text = Array((AccessTrace.heading + lines).utf8)
    #expect(try AccessTrace(text: text).records.count == AccessTrace.maximumRecordCount)
    #expect(throws: AccessTrace.ParseError.self) { try AccessTrace(text: text + Array(line.utf8)) }
  }
}
