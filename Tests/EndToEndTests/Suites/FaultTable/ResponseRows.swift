import SeededRandom
import Testing

/// The rows of the fault table about the answers of a server.
extension RealMounts {
  @Suite struct ResponseRows {
    /// Expects that an invalid response is rejected.
    ///
    /// None of its bytes is stored. It is requested again, at growing intervals, until the
    /// deadline; then the read fails.
    ///
    /// The seed picks one of `faults`. `passingGet` is the outcome of a download that meets the
    /// fault for a while, `lastingGet` of one that meets nothing else.
    static func expectRejection(
      _ row: FaultRow, _ faults: [OriginFault],
      passingGet: FaultDownload.Outcome = .right, lastingGet: FaultDownload.Outcome = .failed,
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let fault = try #require(faults.randomElement(using: &row.random))
      let handle = try row.open()
      // Scattered and small, so no read looks like the beginning of a sequential one.
      let parts = row.parts(12).shuffled(using: &row.random)
      func place(in part: Int) -> Range<Int64> {
        row.randomRanges(1, in: parts[part], byteCounts: 1...4096)[0]
      }
      try row.expectRight(handle, [place(in: 0), place(in: 1)], sourceLocation: sourceLocation)

      // The fault passes.
      let count = Int.random(in: 1...2, using: &row.random)
      let metBefore = try row.requests().count(where: fault.isMet)
      try row.inflict(fault, times: count)
      try row.expectRight(handle, (2..<6).map(place), sourceLocation: sourceLocation)
      try row.get(passingGet, options: ["--retries", "4"], sourceLocation: sourceLocation)
      let met = try row.requests().count(where: fault.isMet) - metBefore
      #expect(met == count, "\(fault)", sourceLocation: sourceLocation)

      // The fault lasts.
      try row.clearFaults()
      try row.inflict(fault)
      let cachedBefore = try row.status().cachedByteCount
      let requestsBefore = try row.requests().count
      let download = try row.startGet(["--retries", "2"], name: "lasting.bin")
      try row.expectRead(
        handle, place(in: 6), failsWith: ["EIO", "ETIMEDOUT"], sourceLocation: sourceLocation)
      #expect(
        try row.status().cachedByteCount == cachedBefore, "stored: \(fault)",
        sourceLocation: sourceLocation)
      let requestCount = try row.requests().count - requestsBefore
      // Intervals double from 0.1 s: a few requests, and no storm.
      #expect((2...40).contains(requestCount), "\(fault)", sourceLocation: sourceLocation)
      try download.expect(lastingGet, sourceLocation: sourceLocation)

      try row.clearFaults()
      try row.expectRecovery(handle, parts[6], sourceLocation: sourceLocation)
      try row.expectWhole(handle, sourceLocation: sourceLocation)
      try row.end(sourceLocation: sourceLocation)
    }
  }
}
