import ExtentRecord
import Testing

@testable import RemoteFiles

/// The cache entries that an eviction may remove, and the times at which an entry may be opened.
@Suite struct EntryUsersTests {
  /// A file that is also its version.
  private final class Item: EntryOwner, EntryHolder {
    var entryOwner: any EntryOwner { self }
    var isInUse: Bool { false }
    func removeEntryIfUnused(_ remove: () -> Void) -> Bool { false }
    func forgetEntryIfUnused() -> Bool { false }
  }

  private let key = CacheKey("a")

  /// The macros cannot call mutating methods.
  private func removal(_ users: inout EntryUsers) -> String {
    switch users.beginRemoval(key) {
    case .no: "no"
    case .byFile: "by its file"
    case .free: "free"
    }
  }

  @Test("An entry is either opened for the first time or removed")
  func looksAndRemovals() {
    var users = EntryUsers()
    var answers = [users.beginLook(key), users.beginLook(key)]
    #expect(answers == [true, false])
    var removals = [removal(&users)]
    users.endLook(key)
    removals += [removal(&users), removal(&users)]
    #expect(removals == ["no", "free", "no"])
    let item = Item()
    answers = [users.beginLook(key), users.recordNew(key, of: item, item)]
    users.endRemoval(key)
    answers += [users.beginLook(key), users.recordNew(key, of: item, item)]
    #expect(answers == [false, false, true, true])
  }

  @Test("The file that uses an entry removes it, until the file is gone or the entry is")
  func files() {
    var users = EntryUsers()
    var removals: [String] = []
    do {
      let file = Item()
      let version = Item()
      users.note(key, of: file, version)
      #expect(users.holder(of: key) === version)
      removals.append(removal(&users))
      users.forget(key)
      #expect(users.holder(of: key) == nil)
      removals.append(removal(&users))
      users.endRemoval(key)
      users.note(key, of: file, version)
      removals.append(removal(&users))
      withExtendedLifetime((file, version)) {}
    }
    #expect(users.holder(of: key) == nil)
    removals.append(removal(&users))
    #expect(removals == ["by its file", "free", "by its file", "free"])
  }
}
