import HTTPTransferCore
import Testing

/// The handling of a whole file with a wrong checksum.
@Suite struct FileChecksumTests {
  private func check(from mirrors: [Int], hasEarlierBytes: Bool = false) -> FileChecksum {
    var check = FileChecksum()
    check.hasEarlierBytes = hasEarlierBytes
    for mirror in mirrors { check.recordStored(from: mirror) }
    _ = check.begin()
    return check
  }

  @Test("The whole is hashed once, and again when bytes have come anew")
  func progress() {
    var check = check(from: [0])
    #expect(check.isHashing)
    #expect(check.begin() == false)
    check.succeed()
    #expect(check.isRight)
    #expect(check.begin() == false)
    check.recordStored(from: 0)
    #expect(!check.isRight)
    #expect(check.begin() == true)
    check.abandon()
    #expect(check.begin() == true)
  }

  @Test("The only server is not asked again, one of several is left out")
  func oneContributor() {
    var single = check(from: [0])
    #expect(single.fail(trusted: [0]) == .giveUp)
    #expect(single.hasFailed)
    var other = check(from: [1])
    #expect(other.fail(trusted: [0, 1]) == .refetch(culprit: 1))
    #expect(!other.hasFailed)
  }

  @Test("Where several have brought the whole, it is fetched once more to find the culprit")
  func severalContributors() {
    var check = check(from: [0, 1])
    #expect(check.fail(trusted: [0, 1]) == .refetch(culprit: nil))
    check.recordStored(from: 0)
    #expect(check.fail(trusted: [0, 1]) == .refetch(culprit: 0))
    check.recordStored(from: 1)
    #expect(check.fail(trusted: [1]) == .giveUp)
  }

  @Test("A whole that several bring wrong together, again and again, is given up in the end")
  func alwaysShared() {
    var check = FileChecksum()
    for count in 1...3 {
      check.recordStored(from: 0)
      check.recordStored(from: 1)
      #expect(check.fail(trusted: [0, 1]) == (count < 3 ? .refetch(culprit: nil) : .giveUp))
    }
  }

  @Test("Who has brought bytes that are gone is not blamed for those that came after them")
  func forgottenBytes() {
    var check = check(from: [0], hasEarlierBytes: true)
    check.forgetBytes()
    check.recordStored(from: 1)
    #expect(check.fail(trusted: [0, 1]) == .refetch(culprit: 1))
  }

  @Test("Bytes of an earlier mount or run are nobody's: the whole is fetched once more")
  func earlierBytes() {
    var check = check(from: [0], hasEarlierBytes: true)
    #expect(check.fail(trusted: [0]) == .refetch(culprit: nil))
    check.recordStored(from: 0)
    #expect(check.fail(trusted: [0]) == .giveUp)
  }
}
