import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// The small values that a version's state consists of.
@Suite struct VersionPartsTests {
  private let start = ContinuousClock.now

  private func fail(
    _ backoff: inout Backoff, _ code: FileError.Code, at time: Duration
  ) -> Backoff.Decision {
    backoff.failed(
      FileError(code, "a reason"), retryAfter: nil, policy: RetryPolicy(), random: 0.5,
      now: start + time)
  }

  @Test("Requests that fail together are one failure")
  func oneFailure() {
    var backoff = Backoff()
    guard case .retry(let delay) = fail(&backoff, .unavailable, at: .zero) else {
      Issue.record("no retry")
      return
    }
    #expect(backoff.isPending(now: start))
    #expect(!backoff.isPending(now: start + delay))
    guard case .isWaitingAlready = fail(&backoff, .unavailable, at: .zero) else {
      Issue.record("counted twice")
      return
    }
    #expect(backoff.failureCount == 1)
    backoff.recordFruitful()
    #expect(backoff.failureCount == 0 && !backoff.isPending(now: start))
  }

  @Test("A server that cannot be reached is asked again within a second")
  func unreachable() {
    var backoff = Backoff()
    for second in 0..<60 {
      guard case .retry(let delay) = fail(&backoff, .unreachable, at: .seconds(second)) else {
        continue
      }
      #expect(delay <= .seconds(1))
    }
  }

  @Test("After many requests in vain the next ones are sent slowly, until one brings something")
  func fruitless() {
    var backoff = Backoff()
    let atFirst = backoff.forget(now: start)
    #expect(atFirst == nil)
    for _ in 0..<16 { backoff.recordFruitless() }
    #expect(backoff.isFruitless)
    let delay = backoff.forget(now: start)
    #expect(delay == .seconds(1))
    #expect(backoff.isPending(now: start))
    backoff.recordFruitful()
    #expect(!backoff.isFruitless)
  }

  @Test("Opens wait for the length until their deadline, and then none does for a moment")
  func lengthWaits() {
    var waits = LengthWaits()
    waits.insert(LengthWait(answer: {}, deadline: start + .seconds(1)))
    waits.insert(LengthWait(answer: {}, deadline: start + .seconds(3)))
    let early = waits.miss(now: start, until: start)
    #expect(early.isEmpty)
    #expect(waits.mayWait(now: start))
    waits.postpone(by: .seconds(1))
    let now = start + .seconds(2)
    let missed = waits.miss(now: now, until: now)
    #expect(missed.count == 1)
    #expect(!waits.mayWait(now: now))
    #expect(waits.mayWait(now: now + FileSettings.failureMemory))
    let rest = waits.removeAll()
    #expect(rest.count == 1)
    #expect(waits.isEmpty)
  }

  @Test("What a read has failed for is remembered for its bytes, for a moment")
  func recentFailures() {
    var failures = RecentFailures()
    failures.remember(
      [0..<4096, 4096..<8192], FileError(.timedOut, "a reason"), now: start)
    let remembered = failures.error(in: 8000..<9000, now: start)
    #expect(remembered?.code == .timedOut)
    let other = failures.error(in: 8192..<9000, now: start)
    #expect(other == nil)
    let later = failures.error(in: 0..<4096, now: start + FileSettings.failureMemory)
    #expect(later == nil)
  }

  @Test("Requests have names of their own, and what ends them leaves the others alone")
  func segments() throws {
    var list = SegmentList()
    for range in [0..<100, 100..<200, 200..<300] as [ByteRange] {
      list.append(
        Segment(PlannedRequest(range: range), id: list.nextID(), length: 250, now: start))
    }
    #expect(Set(list.map(\.id)).count == 3)
    #expect(list.map(\.end) == [100, 200, 250])
    let second = list[1].id
    list.change(second) { $0.advance(to: 150, now: start) }
    let cancelled = list.end { $0.id == second }
    #expect(cancelled.isEmpty)
    #expect(list.map(\.end) == [100, 150, 250])
    #expect(list.brings(149) && !list.brings(150))
    list.remove(second)
    #expect(list[second] == nil)
    let changed: Int64? = list.change(second) { $0.end }
    #expect(changed == nil)
    #expect(list.count == 2)
  }

  @Test("Of a hedge and the request beside which it was sent, the one that brings nothing ends")
  func rivals() throws {
    var list = SegmentList()
    list.append(
      Segment(PlannedRequest(range: 0..<100), id: list.nextID(), length: nil, now: start))
    let first = list[0].id
    let hedge = PlannedRequest(range: 0..<100, hedgeOf: first)
    list.append(Segment(hedge, id: list.nextID(), length: nil, now: start))
    #expect(list.map(\.hedgeOf) == [nil, first])
    _ = list.endRival(of: list[1].id)
    #expect(list.map(\.end) == [0, 100])
    #expect(list.allSatisfy { $0.hedgeOf == nil })
    let isDropped = list.dropFailedHedge(list[1].id)
    #expect(!isDropped)
  }

  @Test("One checkpoint runs at a time, and the first of a whole file begins at once")
  func checkpoints() {
    var phase = CheckpointPhase()
    let now = ContinuousClock.now + .seconds(1)
    let outcomes = [
      phase.begin(ofWhole: false, now: now, interval: .seconds(60)),
      phase.begin(ofWhole: true, now: now, interval: .seconds(60)),
      phase.beginStamp(),
    ]
    #expect(outcomes == [false, true, false])
    phase.end()
    let isSecond = phase.begin(ofWhole: true, now: now, interval: .seconds(60))
    let isStamp = phase.beginStamp()
    #expect(!isSecond && isStamp && phase.isBusy)
    let queued = [phase.queueStamp(), phase.queueStamp()]
    #expect(queued == [true, false])
  }

  @Test("Memory holds only bytes that are present")
  func memory() throws {
    var content = ContentMap(length: 1000, extents: ExtentSet([0..<100]))
    _ = content.beginSpill(into: try SpillFile())
    _ = content.insert(200..<300, from: 0, by: .stream)
    content.recordSpilled([200..<300])
    #expect(content.spilledByteCount == 100)
    #expect(content.isInCache)
    content.forget(250..<1000)
    #expect(content.spill?.extents.extents == [200..<250])
    content.setCached(ExtentSet())
    #expect(content.extents.extents == [200..<250])
    #expect(!content.isInCache)
    let isDropped = content.dropSpill()
    #expect(isDropped)
    #expect(content.extents.isEmpty)
  }
}
