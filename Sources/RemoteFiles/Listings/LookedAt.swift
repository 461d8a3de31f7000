internal import HTTPTransferCore

/// The files, or the directories, of a directory that were looked up or looked at ahead, by name.
///
/// Each is kept until ``forget(unless:)``, and stays known while other references exist: the
/// kernel's lookups, an open handle, or a question to the server.
struct LookedAt<Item: AnyObject & Sendable> {
  private struct Place {
    weak var item: Item?
    /// A strong reference while it is kept.
    var keeper: Item?
    /// The memory that it needs while it is kept.
    var byteCount: Int
  }

  private var places: [PathKey: Place] = [:]

  /// The memory that all kept items need, estimated.
  private(set) var byteCount = 0

  /// The item of a name, kept or only known.
  subscript(key: PathKey) -> Item? { places[key]?.item }

  /// All items that still exist.
  var all: [(key: PathKey, item: Item)] {
    places.compactMap { key, place in place.item.map { (key: key, item: $0) } }
  }

  /// Keeps `item`, even if it is known already.
  ///
  /// - Returns: the item that had the name before, if it is another one.
  mutating func keep(_ item: Item, as key: PathKey, byteCount: Int) -> Item? {
    let before = places[key]
    self.byteCount += byteCount - (before?.byteCount ?? 0)
    places[key] = Place(item: item, keeper: item, byteCount: byteCount)
    guard let other = before?.item, other !== item else { return nil }
    return other
  }

  /// Keeps only the items that are wanted.
  ///
  /// - Returns: the others, to be released without a lock: these may be the last references.
  mutating func forget(unless isWanted: (PathKey, Item) -> Bool) -> [Item] {
    var left: [PathKey: Place] = [:]
    var released: [Item] = []
    byteCount = 0
    for (key, place) in places {
      // Some items have already been freed.
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
