import HTTPTransferCore
import SourceList
import TextFormat

/// The entries of a session together with those of a command, which may continue some of them.
///
/// An entry of the command continues one of the session that has the same object, if place and
/// header fields are equal, too. One of both suffices if no others of the two have that object. It
/// is a file of its own otherwise: header fields can select other bytes under one URL.
struct SessionMerge {
  /// The entries of the session, then those of the command that continue none.
  private(set) var entries: [SessionEntry]
  /// The places that entries keep, and those that the command gives them.
  private var moves: [(from: String, to: String)] = []

  /// - Parameters:
  ///   - stored: all entries of the session; those that are continued already stay as they are.
  ///   - new: all others.
  init(_ stored: [SessionEntry], with new: [SessionEntry]) {
    entries = stored
    guard !stored.isEmpty else {
      entries = new
      return
    }
    var continues = [Bool](repeating: false, count: new.count)
    for (old, index) in Self.pairs(stored, new) {
      continues[index] = true
      if stored[old].keepsOtherPlace(than: new[index]) {
        moves.append((stored[old].path, new[index].path))
      }
      entries[old].update(from: new[index])
    }
    entries += new.indices.lazy.filter { !continues[$0] }.map { new[$0] }
  }

  /// Says which places of the command are not used.
  func printWarning() {
    guard let move = moves.first else { return }
    printToStandardError(
      escapingControls(
        "httpfs: warning: '\(move.from)' keeps its place in the session, not '\(move.to)'"
          + (moves.count > 1 ? " (and \(moves.count - 1) more)" : "")))
  }

  /// The entries of the session that are continued, and by which, in the order of the latter.
  private static func pairs(
    _ stored: [SessionEntry], _ new: [SessionEntry]
  ) -> [(old: Int, new: Int)] {
    let named = Dictionary(grouping: new.indices) { new[$0].object }
    var pairs: [(old: Int, new: Int)] = []
    for (object, old) in Dictionary(grouping: stored.indices, by: { stored[$0].object }) {
      guard let named = named[object] else { continue }
      var open = Set(old.filter { !stored[$0].isContinued })
      if old.count == 1, named.count == 1 {
        if !open.isEmpty, new[named[0]].resembles(stored[old[0]]) {
          pairs.append((old[0], named[0]))
        }
        continue
      }
      // Equal ones are those of the command in their order.
      var waiting: [[PathKey]: [Int]] = [:]
      for index in old.reversed() {
        for key in stored[index].keysInSession { waiting[key, default: []].append(index) }
      }
      for index in named {
        search: for key in new[index].keysInCommand {
          while let found = waiting[key]?.popLast() {
            guard open.remove(found) != nil else { continue }
            pairs.append((found, index))
            break search
          }
        }
      }
    }
    return pairs.sorted { $0.new < $1.new }
  }
}

extension SessionEntry {
  /// What its URL names to its user: equal for URLs that differ only in passwords and signatures.
  fileprivate var object: [PathKey] {
    let user = source.url.userInfo?.prefix { $0 != ":" }
    return [
      PathKey(source.url.withoutSignature), PathKey(source.isListing ? "/" : ""),
      PathKey(String(user ?? "")),
    ]
  }

  /// The header fields, which can select the bytes of the object.
  private var fields: [PathKey] {
    source.headers.map { PathKey("\($0.name.lowercased()): \($0.value)") }.sorted()
  }

  /// Its place, and for a name from its server the directory.
  private var placesInSession: [[PathKey]] {
    nameSource.isOfResponse ? [[place], [directoryPlace, PathKey("")]] : [[place]]
  }

  /// The same of an entry of a command; the first that fits counts.
  ///
  /// Its server may name a file in its directory as it did before.
  private var placesInCommand: [[PathKey]] {
    asksForName ? [[directoryPlace, PathKey("")], [place]] : [[place]]
  }

  /// What an entry of a command that continues it has in common with it.
  fileprivate var keysInSession: [[PathKey]] { placesInSession.map { fields + $0 } }

  /// The same of an entry of a command; the first that fits counts.
  fileprivate var keysInCommand: [[PathKey]] { placesInCommand.map { fields + $0 } }

  /// Whether an entry of a command has the place or the header fields of one of the session.
  fileprivate func resembles(_ stored: SessionEntry) -> Bool {
    fields == stored.fields || placesInCommand.contains { stored.placesInSession.contains($0) }
  }
}
