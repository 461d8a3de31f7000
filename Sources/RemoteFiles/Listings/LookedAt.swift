internal import HTTPTransferCore

/// The files, or the directories, of a directory that somebody has looked at, by their names.
///
/// Each is kept until ``forget(unless:)``, and stays known for as long as somebody else has it: the
/// kernel by its look-ups, an open handle, or a question to the server.
struct LookedAt<Item: AnyObject & Sendable> {
  private struct Place {
    weak var item: Item?
    /// The same, while it is kept.
    var keeper: Item?
    /// What it takes in memory, while it is kept.
    var byteCount: Int
  }

  private var places: [PathKey: Place] = [:]

  /// What those that are kept take in memory, about.
  private(set) var byteCount = 0

  /// The item of a name, whether it is kept or not.
  subscript(key: PathKey) -> Item? { places[key]?.item }

  /// All that there are.
  var all: [(key: PathKey, item: Item)] {
    places.compactMap { key, place in place.item.map { (key: key, item: $0) } }
  }

  /// Keeps `item`, also where it was there.
  ///
  /// - Returns: the item that had the name before, if it is another one.
  mutating func keep(_ item: Item, as key: PathKey, byteCount: Int) -> Item? {
    let before = places[key]
    self.byteCount += byteCount - (before?.byteCount ?? 0)
    places[key] = Place(item: item, keeper: item, byteCount: byteCount)
    guard let other = before?.item, other !== item else { return nil }
    return other
  }

  /// Keeps no item any more, but those that are wanted.
  ///
  /// - Returns: the others, to be released without a lock: it may be the last reference.
  mutating func forget(unless isWanted: (PathKey, Item) -> Bool) -> [Item] {
    var left: [PathKey: Place] = [:]
    var released: [Item] = []
    byteCount = 0
    for (key, place) in places {
      // Of some nobody has known anything for a while.
      guard let item = place.item else { continue }
      if place.keeper != nil, isWanted(key, item) {
        left[key] = place
        byteCount += place.byteCount
      } else {
        left[key] = Place(item: item, keeper: nil, byteCount: 0)
        released.append(item)
      }
    }
    places = left
    return released
  }
}
