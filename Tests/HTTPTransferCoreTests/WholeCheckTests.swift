import HTTPTransferCore
import Testing

/// The handling of a whole file with a wrong checksum.
@Suite struct WholeCheckTests {
  private func check(from mirrors: [Int], hasEarlierBytes: Bool = false) -> WholeCheck {
    var check = WholeCheck()
    check.hasEarlierBytes = hasEarlierBytes
    for mirror in mirrors { check.noteStored(from: mirror) }
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
    check.noteStored(from: 0)
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
    #expect(other.fail(trusted: [0, 1]) == .refetch(liar: 1))
    #expect(!other.hasFailed)
  }

  @Test("Where several have brought the whole, it is fetched once more to find the liar")
  func severalContributors() {
    var check = check(from: [0, 1])
    #expect(check.fail(trusted: [0, 1]) == .refetch(liar: nil))
    check.noteStored(from: 0)
    #expect(check.fail(trusted: [0, 1]) == .refetch(liar: 0))
    check.noteStored(from: 1)
    #expect(check.fail(trusted: [1]) == .giveUp)
  }

  @Test("A whole that several bring wrong together, again and again, is given up in the end")
  func alwaysShared() {
    var check = WholeCheck()
    for count in 1...3 {
      check.noteStored(from: 0)
      check.noteStored(from: 1)
      #expect(check.fail(trusted: [0, 1]) == (count < 3 ? .refetch(liar: nil) : .giveUp))
    }
  }

  @Test("Who has brought bytes that are gone is not blamed for those that came after them")
  func forgottenBytes() {
    var check = check(from: [0], hasEarlierBytes: true)
    check.forgetBytes()
    check.noteStored(from: 1)
    #expect(check.fail(trusted: [0, 1]) == .refetch(liar: 1))
  }

  @Test("Bytes of an earlier mount or run are nobody's: the whole is fetched once more")
  func earlierBytes() {
    var check = check(from: [0], hasEarlierBytes: true)
    #expect(check.fail(trusted: [0]) == .refetch(liar: nil))
    check.noteStored(from: 0)
    #expect(check.fail(trusted: [0]) == .giveUp)
  }
}
