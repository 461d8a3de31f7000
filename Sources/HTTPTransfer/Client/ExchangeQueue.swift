internal import HTTPTransferCore

/// The exchanges that wait for a place at their origin.
///
/// libcurl would let them wait, too, but each with a handle and its buffer, and in the order in which
/// they came: who is waited for comes first here, and some places are for such alone.
///
/// An exchange takes a place of the origin that the user has named, wherever redirects have led: a server
/// that hangs, and redirects to ever more names, has no more than the others.
package struct ExchangeQueue {
  package struct Entry {
    package let id: ExchangeID
    package var request: ExchangeRequest
    package let receiver: any ExchangeReceiver

    package init(id: ExchangeID, request: ExchangeRequest, receiver: any ExchangeReceiver) {
      self.id = id
      self.request = request
      self.receiver = receiver
    }
  }

  /// Those who are treated alike at an origin.
  private struct Class: Hashable {
    let priority: ExchangePriority
    /// Whether the file has a rate limit of its own: such exchanges hold their places for long.
    let isLimited: Bool
  }

  /// The places of one origin, and who wants one.
  private struct Line {
    var runningCount = 0
    /// How many of the running have a rate limit of their own.
    var limitedCount = 0
    /// Each in the order of arrival; some may have gone, or moved to another class.
    var waiting: [Class: ArraySlice<ExchangeID>] = [:]
  }

  private struct Place {
    let origin: String
    let isLimited: Bool
  }

  private let placeCount: Int
  /// Places that no read-ahead takes.
  private let reservedCount: Int
  /// Places that files with a rate limit of their own may take: the others are not to wait for them.
  private let limitedPlaceCount: Int
  /// How many exchanges may be under way with all origins together.
  private let totalCount: Int
  /// Places of all together that only origins with less than ``modestCount`` take.
  private let modestPlaceCount: Int
  /// As many as a reader of one file needs.
  private static let modestCount = 8
  private var entries: [ExchangeID: Entry] = [:]
  private var places: [ExchangeID: Place] = [:]
  private var lines: [String: Line] = [:]
  /// The origins at which somebody may find a place.
  private var candidates: Set<String> = []

  /// - Parameters:
  ///   - placeCount: how many exchanges with one origin may be under way.
  ///   - totalCount: how many with all of them together.
  package init(placeCount: Int, totalCount: Int = .max) {
    self.placeCount = placeCount
    self.totalCount = totalCount
    modestPlaceCount = totalCount / 4
    reservedCount = placeCount / 16
    limitedPlaceCount = max(1, placeCount / 2)
  }

  package var isEmpty: Bool { entries.isEmpty }

  package mutating func append(_ entry: Entry) {
    let origin = entry.request.placeOrigin
    entries[entry.id] = entry
    lines[origin, default: Line()].waiting[Self.class(of: entry.request), default: []].append(
      entry.id)
    candidates.insert(origin)
  }

  /// Takes out somebody who has a place from now on; ``leave(_:)`` gives it back.
  package mutating func next() -> Entry? {
    while let origin = candidates.first {
      if let id = takeNext(at: origin) { return entries.removeValue(forKey: id) }
      candidates.remove(origin)
    }
    return nil
  }

  private static func `class`(of request: ExchangeRequest) -> Class {
    Class(priority: request.priority, isLimited: request.rateLimit?.bytesPerSecond != nil)
  }

  private mutating func takeNext(at origin: String) -> ExchangeID? {
    guard var line = lines[origin], hasRoom(line) else { return nil }
    defer { lines[origin] = line }
    for priority in ExchangePriority.allCases {
      let limit = priority == .demand ? placeCount : placeCount - reservedCount
      guard line.runningCount < limit else { continue }
      var first: (id: ExchangeID, class: Class)?
      for isLimited in [false, true] where !isLimited || line.limitedCount < limitedPlaceCount {
        let someClass = Class(priority: priority, isLimited: isLimited)
        guard let id = firstWaiting(someClass, in: &line) else { continue }
        if first.map({ id.rawValue < $0.id.rawValue }) ?? true { first = (id, someClass) }
      }
      guard let first else { continue }
      line.waiting[first.class]?.removeFirst()
      line.runningCount += 1
      if first.class.isLimited { line.limitedCount += 1 }
      places[first.id] = Place(origin: origin, isLimited: first.class.isLimited)
      return first.id
    }
    return nil
  }

  /// Whether the places of all together leave one for an origin.
  private func hasRoom(_ line: Line) -> Bool {
    let kept = line.runningCount < Self.modestCount ? 0 : modestPlaceCount
    return places.count < totalCount - kept
  }

  /// The first of a class who still waits in it.
  private func firstWaiting(_ someClass: Class, in line: inout Line) -> ExchangeID? {
    while let id = line.waiting[someClass]?.first {
      if entries[id]?.request.priority == someClass.priority { return id }
      line.waiting[someClass]?.removeFirst()
    }
    return nil
  }

  /// An exchange that had a place has ended.
  package mutating func leave(_ id: ExchangeID) {
    let wasScarce = places.count >= totalCount - modestPlaceCount
    guard let place = places.removeValue(forKey: id), var line = lines[place.origin] else { return }
    line.runningCount -= 1
    if place.isLimited { line.limitedCount -= 1 }
    if line.runningCount <= 0, line.waiting.values.allSatisfy(\.isEmpty) {
      lines[place.origin] = nil
    } else {
      lines[place.origin] = line
      candidates.insert(place.origin)
    }
    if wasScarce { candidates.formUnion(lines.keys) }
  }

  /// Takes out somebody who no longer wants a place; nil where nobody of that name waits.
  package mutating func remove(_ id: ExchangeID) -> Entry? { entries.removeValue(forKey: id) }

  /// Takes out everybody.
  package mutating func removeAll() -> [Entry] {
    defer { entries = [:] }
    return Array(entries.values)
  }

  /// Changes the request of one who waits.
  package mutating func update(_ id: ExchangeID, _ change: (inout ExchangeRequest) -> Void) {
    guard var entry = entries[id] else { return }
    let priority = entry.request.priority
    change(&entry.request)
    if entry.request.priority == priority { entries[id] = entry } else { append(entry) }
  }
}
