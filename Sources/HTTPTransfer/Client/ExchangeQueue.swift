internal import HTTPTransferCore

/// The exchanges that wait for a place at their origin.
///
/// libcurl would let them wait, too, but each with a handle and its buffer, and in the order in which
/// they came: who is waited for comes first here, and some places are for such alone.
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

  /// The places of one origin, and who wants one.
  private struct Line {
    var runningCount = 0
    /// By priority, each in the order of arrival; some may have gone, or moved to another one.
    var waiting: [ExchangePriority: ArraySlice<ExchangeID>] = [:]
  }

  private let placeCount: Int
  /// Places that no read-ahead takes.
  private let reservedCount: Int
  private var entries: [ExchangeID: Entry] = [:]
  private var lines: [String: Line] = [:]
  /// The origins at which somebody may find a place.
  private var candidates: Set<String> = []

  /// - Parameter placeCount: how many exchanges with one origin may be under way.
  package init(placeCount: Int) {
    self.placeCount = placeCount
    reservedCount = placeCount / 16
  }

  package var isEmpty: Bool { entries.isEmpty }

  package mutating func append(_ entry: Entry) {
    let origin = entry.request.url.normalizedOrigin
    entries[entry.id] = entry
    lines[origin, default: Line()].waiting[entry.request.priority, default: []].append(entry.id)
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

  private mutating func takeNext(at origin: String) -> ExchangeID? {
    guard var line = lines[origin] else { return nil }
    defer { lines[origin] = line }
    for priority in ExchangePriority.allCases {
      let limit = priority == .demand ? placeCount : placeCount - reservedCount
      guard line.runningCount < limit else { continue }
      while let id = line.waiting[priority]?.popFirst() {
        guard entries[id]?.request.priority == priority else { continue }
        line.runningCount += 1
        return id
      }
    }
    return nil
  }

  /// An exchange with `origin` has ended.
  package mutating func leave(_ origin: String) {
    guard let line = lines[origin] else { return }
    if line.runningCount <= 1, line.waiting.values.allSatisfy(\.isEmpty) {
      lines[origin] = nil
    } else {
      lines[origin]?.runningCount -= 1
      candidates.insert(origin)
    }
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
