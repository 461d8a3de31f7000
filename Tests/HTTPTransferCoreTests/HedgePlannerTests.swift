import HTTPTransferCore
import Testing

@Suite struct HedgePlannerTests {
  private struct Segment: FetchSegment {
    var id = 1
    var start: Int64 = 0
    var position: Int64 = 1 << 20
    var end: Int64 = 64 << 20
    var firstByteAt: ContinuousClock.Instant?
    var lastProgressAt: ContinuousClock.Instant
    var hedgeOf: Int?
    var isHedgeable = true

    mutating func stop() { end = position }
  }

  private let start = ContinuousClock.now
  private let planner = HedgePlanner(delay: .seconds(1))

  private func hedge(
    _ segment: Segment, among others: [Segment] = [], wanted: ByteRange? = nil,
    after delay: Duration = .seconds(1)
  ) -> ByteRange? {
    planner.hedge(of: segment, among: [segment] + others, wanted: wanted, now: start + delay)
  }

  @Test(
    "Eight round trips without a byte are too many, within bounds; unknown ones count as 2 s",
    arguments: [(Double?.some(0.001), 0.5), (0.1, 0.8), (10, 4), (nil, 2)])
  func delay(roundTrip: Double?, seconds: Double) {
    #expect(HedgePlanner(roundTrip: roundTrip, timeout: .seconds(60)).delay == .seconds(seconds))
    #expect(HedgePlanner(roundTrip: roundTrip, timeout: .milliseconds(800)).delay <= .seconds(0.4))
  }

  @Test("A hedge asks for the next bytes, at most 4 MiB unless a read waits for more")
  func range() {
    var segment = Segment(lastProgressAt: start)
    #expect(hedge(segment) == 1 << 20..<5 << 20)
    #expect(hedge(segment, wanted: 2 << 20..<3 << 20) == 2 << 20..<6 << 20)
    #expect(hedge(segment, wanted: 0..<32 << 20) == 1 << 20..<32 << 20)
    segment.end = 2 << 20
    #expect(hedge(segment) == 1 << 20..<2 << 20)
    segment.position = segment.end
    #expect(hedge(segment) == nil)
  }

  @Test("Only a silent request that its server alone delays is hedged, once")
  func candidates() {
    var segment = Segment(lastProgressAt: start)
    #expect(hedge(segment, after: .milliseconds(999)) == nil)
    let other = Segment(id: 2, lastProgressAt: start, hedgeOf: 1)
    #expect(hedge(segment, among: [other]) == nil)
    #expect(hedge(other) == nil)
    segment.isHedgeable = false
    #expect(hedge(segment) == nil)
  }

  @Test("Whichever brings something first ends the other", arguments: [0, 1])
  func rival(winner: Int) {
    var segments = [
      Segment(lastProgressAt: start), Segment(id: 2, lastProgressAt: start, hedgeOf: 1),
      Segment(id: 3, lastProgressAt: start),
    ]
    #expect(segments.endRival(ofSegmentAt: 2) == nil)
    let loser = segments.endRival(ofSegmentAt: winner)
    #expect(loser == 1 - winner)
    #expect(segments[1 - winner].end == 1 << 20)
    #expect(segments[1].hedgeOf == nil)
    #expect(segments.endRival(ofSegmentAt: winner) == nil)
  }
}
