internal import Synchronization

/// What holds the names of a listing and what was looked at of them, and can ask for them again.
protocol NameHolder: AnyObject, Sendable {
  /// When its names were last wanted.
  var usedAt: ContinuousClock.Instant { get }

  /// Gives up the names until they are wanted again, and of what was looked at what nobody has.
  func forget()
}

/// Bounds what all listings of a mount hold in memory: what has not been wanted for the longest
/// time is given up.
///
/// Not counted is what a holder keeps after it has forgotten: the files and directories that the
/// kernel knows, which it forgets when it lacks memory itself, those with open handles, and those
/// of which the user has wanted something.
///
/// Lock order: a leaf; holders are called without it.
final class ListingRegistry: Sendable {
  /// In bytes (``HeldBytes``): two million short names, or one million and 80,000 files that were
  /// looked at.
  static let standardLimit = 512 << 20

  private struct Item {
    weak var holder: (any NameHolder)?
    let byteCount: Int
  }

  private struct State {
    var items: [ObjectIdentifier: Item] = [:]
    var total = 0

    /// Forgets the holders that are no more; those that are.
    mutating func sweep() -> [any NameHolder] {
      items = items.filter { $0.value.holder != nil }
      total = items.values.reduce(0) { $0 + $1.byteCount }
      return items.values.compactMap(\.holder)
    }

    mutating func remove(_ id: ObjectIdentifier) {
      total -= items.removeValue(forKey: id)?.byteCount ?? 0
    }
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int = ListingRegistry.standardLimit) { self.limit = limit }

  /// How many bytes are held, as far as is known.
  var total: Int { state.withLock { $0.total } }

  /// `holder` holds so many bytes now.
  func note(_ holder: any NameHolder, byteCount: Int) {
    let id = ObjectIdentifier(holder)
    let holders = state.withLock { state -> [any NameHolder] in
      state.remove(id)
      state.items[id] = Item(holder: holder, byteCount: byteCount)
      state.total += byteCount
      return state.total > limit ? state.sweep() : []
    }
    // A quarter more than must be, so that it is rarely done.
    let goal = limit / 4 * 3
    let others = holders.filter { $0 !== holder }.map { ($0, $0.usedAt) }.sorted { $0.1 < $1.1 }
    for (other, _) in others where total > goal { forget(other) }
    // It holds too much all by itself.
    if total > limit { forget(holder) }
  }

  private func forget(_ holder: any NameHolder) {
    holder.forget()
    state.withLock { $0.remove(ObjectIdentifier(holder)) }
  }
}
