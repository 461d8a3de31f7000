import Testing

@testable import RangeCache

@Suite struct WriteMarksTests {
  @Test func `a sync covers the writes that had ended when it began`() {
    var writes = WriteMarks(hasUnsynced: false)
    #expect(writes.areSynced)
    writes.begin()
    writes.end()
    #expect(!writes.areSynced)
    let mark = writes.mark
    writes.recordSync(since: mark)
    #expect(writes.areSynced)
  }

  @Test func `a write that is under way while a sync runs is not covered by it`() {
    var writes = WriteMarks(hasUnsynced: false)
    writes.begin()
    let mark = writes.mark
    writes.recordSync(since: mark)
    #expect(!writes.areSynced)
    writes.end()
    #expect(!writes.areSynced)
    writes.recordSync(since: writes.mark)
    #expect(writes.areSynced)
  }

  @Test func `a write that begins after a sync is not covered, and an old mark takes nothing back`()
  {
    var writes = WriteMarks(hasUnsynced: true)
    #expect(!writes.areSynced)
    let old = writes.mark
    writes.begin()
    writes.end()
    let new = writes.mark
    writes.recordSync(since: new)
    writes.recordSync(since: old)
    #expect(writes.areSynced)
    let before = writes.mark
    writes.begin()
    writes.end()
    writes.recordSync(since: before)
    #expect(!writes.areSynced)
  }
}
