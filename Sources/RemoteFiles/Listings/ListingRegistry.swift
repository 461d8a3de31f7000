internal import Synchronization

/// What holds the names of a listing, and can ask for them again.
protocol NameHolder: AnyObject, Sendable {
  /// When its names were last wanted.
  var usedAt: ContinuousClock.Instant { get }

  /// Gives the names up until they are wanted again.
  func forget()
}

/// Bounds the names that all listings of a mount hold in memory: those that have not been wanted for
/// the longest time are given up.
///
/// Lock order: a leaf; holders are called without it.
final class ListingRegistry: Sendable {
  /// As many names as a list of a million lines has; some 200 bytes each.
  static let standardLimit = 1_000_000

  private struct Item {
    weak var holder: (any NameHolder)?
    let count: Int
  }

  private struct State {
    var items: [ObjectIdentifier: Item] = [:]
    var total = 0

    /// Forgets the holders that are no more; those that are.
    mutating func sweep() -> [any NameHolder] {
      items = items.filter { $0.value.holder != nil }
      total = items.values.reduce(0) { $0 + $1.count }
      return items.values.compactMap(\.holder)
    }
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int = ListingRegistry.standardLimit) { self.limit = limit }

  /// How many names are held, as far as is known.
  var total: Int { state.withLock { $0.total } }

  /// `holder` has so many names now.
  func note(_ holder: any NameHolder, nameCount: Int) {
    let id = ObjectIdentifier(holder)
    let holders = state.withLock { state -> [any NameHolder] in
      state.total -= state.items[id]?.count ?? 0
      // A directory without names takes memory, too.
      state.items[id] = Item(holder: holder, count: nameCount + 1)
      state.total += nameCount + 1
      return state.total > limit ? state.sweep() : []
    }
    // A quarter more than must be, so that it is rarely done.
    let goal = limit / 4 * 3
    let others = holders.filter { $0 !== holder }.map { ($0, $0.usedAt) }.sorted { $0.1 < $1.1 }
    for (other, _) in others where total > goal {
      other.forget()
      state.withLock { state in
        state.total -= state.items.removeValue(forKey: ObjectIdentifier(other))?.count ?? 0
      }
    }
  }
}
