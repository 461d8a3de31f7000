internal import HTTPTransferCore

/// The exchanges that wait for a slot of their origin.
///
/// libcurl would queue them too, but each with a handle and its buffer, and in the order of
/// arrival. Here exchanges that a read waits for come first, and some slots are reserved for them.
///
/// An exchange takes a slot of the origin that the user named, wherever redirects have led. So a
/// server that hangs, and redirects to ever more names, gets no more than the others.
package struct ExchangeQueue {
  package struct Entry {
    package let id: ExchangeID
    package var request: ExchangeRequest
    package let receiver: any ExchangeReceiver
    /// How long the first connection may take; nil for the request's own limit.
    package var connectTimeout: Duration?

    package init(id: ExchangeID, request: ExchangeRequest, receiver: any ExchangeReceiver) {
      self.id = id
      self.request = request
      self.receiver = receiver
    }
  }

  /// The exchanges of an origin that are treated alike.
  private struct Class: Hashable {
    let priority: ExchangePriority
    /// Whether the file has its own rate limit: such exchanges keep their slots for long.
    let isLimited: Bool
  }

  /// The slots of one origin, and the exchanges that wait for them.
  private struct Line {
    var runningCount = 0
    /// How many of the running exchanges have their own rate limit.
    var limitedCount = 0
    /// In the order of arrival; some may have ended, or moved to another class.
    var waiting: [Class: ArraySlice<ExchangeID>] = [:]
  }

  private struct Place {
    let origin: String
    let isLimited: Bool
  }

  private let placeCount: Int
  /// The number of slots that read-ahead must not take.
  private let reservedCount: Int
  /// The number of slots for files with their own rate limit, so that the others need not wait for
  /// them.
  private let limitedPlaceCount: Int
  /// The maximum number of exchanges in progress with all origins together.
  private let totalCount: Int
  /// The number of total slots reserved for origins with less than ``modestCount`` exchanges.
  private let modestPlaceCount: Int
  /// As many as one reader of one file needs.
  private static let modestCount = 8
  private var entries: [ExchangeID: Entry] = [:]
  private var places: [ExchangeID: Place] = [:]
  private var lines: [String: Line] = [:]
  /// The origins that may have a slot for a waiting exchange.
  private var candidates: Set<String> = []

  /// - Parameters:
  ///   - placeCount: the maximum number of exchanges in progress with one origin.
  ///   - totalCount: the maximum number with all origins together.
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

  /// Removes a waiting exchange and gives it a slot; ``leave(_:)`` releases the slot.
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

  /// Whether the total limit leaves a slot for an origin.
  private func hasRoom(_ line: Line) -> Bool {
    let kept = line.runningCount < Self.modestCount ? 0 : modestPlaceCount
    return places.count < totalCount - kept
  }

  /// The first exchange of a class that still waits in it.
  private func firstWaiting(_ someClass: Class, in line: inout Line) -> ExchangeID? {
    while let id = line.waiting[someClass]?.first {
      if entries[id]?.request.priority == someClass.priority { return id }
      line.waiting[someClass]?.removeFirst()
    }
    return nil
  }

  /// Releases the slot of an exchange that has ended.
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

  /// Removes a waiting exchange that no longer needs a slot; nil if it does not wait.
  package mutating func remove(_ id: ExchangeID) -> Entry? { entries.removeValue(forKey: id) }

  /// Removes all waiting exchanges.
  package mutating func removeAll() -> [Entry] {
    defer { entries = [:] }
    return Array(entries.values)
  }

  /// Changes the request of a waiting exchange.
  package mutating func update(_ id: ExchangeID, _ change: (inout ExchangeRequest) -> Void) {
    guard var entry = entries[id] else { return }
    let priority = entry.request.priority
    change(&entry.request)
    if entry.request.priority == priority { entries[id] = entry } else { append(entry) }
  }
}
