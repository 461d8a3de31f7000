import HTTPTransfer
import Testing

@Suite struct SyncScheduleTests {
  private let start = ContinuousClock.now

  /// The maximum number of bytes between two syncs while `byteCount` are written in steps of 1 MiB.
  ///
  /// Each sync ends at once.
  private func maximumGap(wanted: Int64?, writing byteCount: Int64) -> Int64 {
    var schedule = SyncSchedule(wantedByteCount: wanted, now: start)
    var (gap, greatest): (Int64, Int64) = (0, 0)
    for _ in 0..<(byteCount >> 20) {
      schedule.wrote(1 << 20)
      gap += 1 << 20
      greatest = max(greatest, gap)
      guard schedule.isDue(now: start) else { continue }
      schedule.began()
      schedule.ended(now: start)
      gap = 0
    }
    return greatest
  }

  @Test("A sync begins every 24 MiB", arguments: [nil, 160 << 20, 1 << 40])
  func bytes(wanted: Int64?) {
    #expect(maximumGap(wanted: wanted, writing: 160 << 20) == 24 << 20)
  }

  @Test("Pieces that are fetched again are synced as often as the first time")
  func piecesAgain() {
    #expect(maximumGap(wanted: 32 << 20, writing: 160 << 20) <= 24 << 20)
  }

  @Test("Syncs come closer towards the end, and the last bytes are left to the finished file's")
  func end() {
    var schedule = SyncSchedule(wantedByteCount: 20 << 20, now: start)
    schedule.wrote(16 << 20)
    #expect(schedule.isDue(now: start))
    schedule.began()
    schedule.wrote(2 << 20)
    #expect(schedule.isDue(now: start))
    schedule.began()
    schedule.wrote(2 << 20)
    #expect(!schedule.isDue(now: start + .seconds(10)))
  }

  @Test("A slow line has what came synced every two seconds")
  func time() {
    var schedule = SyncSchedule(wantedByteCount: 20 << 20, now: start)
    schedule.wrote(1)
    #expect(!schedule.isDue(now: start + .seconds(1)))
    #expect(schedule.isDue(now: start + .seconds(2)))
    schedule.began()
    schedule.ended(now: start + .seconds(3))
    schedule.wrote(1)
    #expect(!schedule.isDue(now: start + .seconds(4)))
  }

  @Test("Writing waits when 26 MiB have come behind a sync")
  func full() {
    var schedule = SyncSchedule(wantedByteCount: nil, now: start)
    schedule.wrote(24 << 20)
    schedule.began()
    schedule.wrote((26 << 20) - 1)
    #expect(!schedule.isFull)
    schedule.wrote(1)
    #expect(schedule.isFull)
  }
}
