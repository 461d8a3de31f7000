/// How many connections paid at each origin; spares the next file of an origin the search.
///
/// Advice only: a forgotten or wrong entry costs a fraction of a second.
package struct HostMemory: Sendable, Equatable {
  private struct Entry: Sendable, Equatable {
    var connections: Int
    /// When the entry was last updated, in days since 1970.
    var day: Int
  }

  /// How many origins are remembered.
  static let limit = 1000

  /// How many days an entry stays valid: servers change.
  static let lifetime = 30

  /// A bound that no controller exceeds.
  static let connectionLimit = 64

  private var entries: [String: Entry] = [:]

  package init() {}

  /// How many connections paid at `origin` (scheme, host and port); nil if unknown.
  package func connections(for origin: String, today: Int) -> Int? {
    guard let entry = entries[origin], today - entry.day <= Self.lifetime else { return nil }
    return entry.connections
  }

  /// Records how many connections paid at `origin`.
  package mutating func note(_ connections: Int, for origin: String, today: Int) {
    entries[origin] = Entry(
      connections: min(max(1, connections), Self.connectionLimit), day: today)
    if entries.count > Self.limit,
      let oldest = entries.min(by: { ($0.value.day, $0.key) < ($1.value.day, $1.key) })
    {
      entries[oldest.key] = nil
    }
  }

  // MARK: Text

  /// A line for each origin, sorted: `ORIGIN CONNECTIONS DAY`.
  package var text: String {
    entries.sorted { $0.key < $1.key }
      .map { "\($0.key) \($0.value.connections) \($0.value.day)\n" }.joined()
  }

  /// Parses ``text``; malformed lines are skipped.
  package init(text: String) {
    for line in text.split(whereSeparator: \.isNewline).prefix(Self.limit) {
      let words = line.split(separator: " ")
      guard words.count == 3, let connections = Int(words[1]), let day = Int(words[2]),
        (1...Self.connectionLimit).contains(connections), day >= 0
      else { continue }
      entries[String(words[0])] = Entry(connections: connections, day: day)
    }
  }
}
