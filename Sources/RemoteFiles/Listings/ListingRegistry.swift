internal import Synchronization

/// A holder of the names of a listing, and of the files and directories created from them.
protocol NameHolder: AnyObject, Sendable {
  /// When its names were last requested.
  var usedAt: ContinuousClock.Instant { get }

  /// Drops the names until they are requested again, and files and directories that are not in use.
  func forget()
}

/// Bounds the memory that all listings of a mount hold: drops the least recently used names.
///
/// Not counted is what a holder keeps after it has forgotten: the files and directories that the
/// kernel knows, which it forgets when memory is short, those with open handles, and those for
/// which the user requested something.
///
/// Lock order: a leaf; holders are called without it.
final class ListingRegistry: Sendable {
  /// In bytes (``HeldBytes``): two million short names, or one million and 80,000 files.
  static let standardLimit = 512 << 20

  private struct Item {
    weak var holder: (any NameHolder)?
    let byteCount: Int
  }

  private struct State {
    var items: [ObjectIdentifier: Item] = [:]
    var total = 0

    /// Removes the holders that are gone, and returns the others.
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

  /// How many bytes are held, as last reported.
  var total: Int { state.withLock { $0.total } }

  /// Records that `holder` holds `byteCount` bytes now.
  func note(_ holder: any NameHolder, byteCount: Int) {
    let id = ObjectIdentifier(holder)
    let holders = state.withLock { state -> [any NameHolder] in
      state.remove(id)
      state.items[id] = Item(holder: holder, byteCount: byteCount)
      state.total += byteCount
      return state.total > limit ? state.sweep() : []
    }
    // A quarter more than necessary, so that this happens rarely.
    let goal = limit / 4 * 3
    let others = holders.filter { $0 !== holder }.map { ($0, $0.usedAt) }.sorted { $0.1 < $1.1 }
    for (other, _) in others where total > goal { forget(other) }
    // The holder alone exceeds the limit.
    if total > limit { forget(holder) }
  }

  private func forget(_ holder: any NameHolder) {
    holder.forget()
    state.withLock { $0.remove(ObjectIdentifier(holder)) }
  }
}
