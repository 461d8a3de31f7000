import Synchronization
import Testing

@testable import RemoteFiles

@Suite struct ListingRegistryTests {
  private final class Holder: NameHolder {
    let usedAt: ContinuousClock.Instant
    private let isForgotten = Mutex(false)

    init(usedAt seconds: Int) { usedAt = .now + .seconds(seconds) }

    func forget() { isForgotten.withLock { $0 = true } }
    var hasNames: Bool { isForgotten.withLock { !$0 } }
  }

  @Test func thoseNotWantedForTheLongestTimeAreGivenUp() {
    let registry = ListingRegistry(limit: 1000)
    let holders = [5, 1, 4, 2, 3].map { Holder(usedAt: $0) }
    for holder in holders { registry.note(holder, byteCount: 200) }
    #expect(holders.allSatisfy { $0.hasNames })
    let last = Holder(usedAt: 0)
    registry.note(last, byteCount: 10)
    // Never the one whose names have just arrived, however long ago they were requested.
    #expect(last.hasNames)
    #expect(holders.map(\.hasNames) == [true, false, true, false, true])
    #expect(registry.total == 610)
  }

  @Test func aListingThatIsReadAgainCountsOnce() {
    let registry = ListingRegistry(limit: 1000)
    let holder = Holder(usedAt: 1)
    for count in [900, 10, 500, 0, 900] { registry.note(holder, byteCount: count) }
    #expect(holder.hasNames)
    #expect(registry.total == 900)
  }

  @Test func directoriesThatAreNoMoreCountForNothing() {
    let registry = ListingRegistry(limit: 1000)
    let holder = Holder(usedAt: 1)
    registry.note(holder, byteCount: 100)
    for _ in 0..<100 { registry.note(Holder(usedAt: 2), byteCount: 100) }
    #expect(holder.hasNames)
    #expect(registry.total <= 1000)
  }

  @Test func whatIsTooMuchByItselfIsGivenUpLast() {
    let registry = ListingRegistry(limit: 1000)
    let other = Holder(usedAt: 2)
    let holder = Holder(usedAt: 1)
    registry.note(other, byteCount: 100)
    registry.note(holder, byteCount: 1001)
    #expect(!other.hasNames)
    #expect(!holder.hasNames)
    #expect(registry.total == 0)
  }
}
