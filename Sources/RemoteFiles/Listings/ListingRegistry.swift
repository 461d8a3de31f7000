internal import Synchronization

/// Bounds the names that all listings of a mount hold in memory: those that have not been wanted for
/// the longest time are given up, and asked for when they are wanted again.
///
/// Lock order: a leaf; directories are called without it.
final class ListingRegistry: Sendable {
  /// As many names as a list of a million lines has; some 200 bytes each.
  private static let limit = 1_000_000

  private struct Item {
    weak var directory: ListedDirectory?
    let count: Int
  }

  private struct State {
    var items: [ObjectIdentifier: Item] = [:]
    var total = 0
  }

  private let state = Mutex(State())

  /// `directory` has so many names now.
  func note(_ directory: ListedDirectory, nameCount: Int) {
    let id = ObjectIdentifier(directory)
    let directories = state.withLock { state -> [ListedDirectory] in
      state.total -= state.items[id]?.count ?? 0
      // A directory without names takes memory, too.
      state.items[id] = Item(directory: directory, count: nameCount + 1)
      state.total += nameCount + 1
      guard state.total > Self.limit else { return [] }
      return state.items.values.compactMap { $0.directory }
    }
    guard !directories.isEmpty else { return }
    // A quarter at once, so that it is rarely done.
    var excess = Self.limit / 4
    let others = directories.filter { $0 !== directory }.map { ($0, $0.usedAt) }
      .sorted { $0.1 < $1.1 }
    for (other, _) in others where excess > 0 {
      other.forget()
      excess -= state.withLock { state in
        let count = state.items.removeValue(forKey: ObjectIdentifier(other))?.count ?? 0
        state.total -= count
        return count
      }
    }
  }
}
