internal import TextFormat

/// The part of a report that precedes the files but depends on all of them.
package struct StatusSums: Sendable {
  package private(set) var totals = StatusTotals()
  private var counts: [FileState: Int] = [:]
  /// When the last file will be complete, in seconds.
  ///
  /// Files are fetched in parallel.
  private(set) var etaSeconds: Double?
  /// The width of the column of names in `.status`.
  private(set) var nameWidth = 4

  /// Keeps one very long name from pushing all figures off the screen.
  package static let maximumNameWidth = 60

  package init() {}

  package init(of files: some Sequence<FileStatus>) {
    for file in files {
      add(file)
      widen(for: file.name)
    }
  }

  package mutating func add(_ file: FileStatus) {
    totals.add(file)
    counts[file.state, default: 0] += 1
    if let eta = file.etaSeconds { etaSeconds = max(etaSeconds ?? eta, eta) }
  }

  /// Adds files that are not known yet.
  package mutating func addUnknown(count: Int) {
    totals.files += count
    counts[.unknown, default: 0] += count
  }

  /// Makes the column of names as wide as `name` needs.
  ///
  /// - Returns: whether the column can grow further.
  @discardableResult
  package mutating func widen(for name: String) -> Bool {
    // A name has at most as many characters as bytes, except for escaped control characters.
    if name.utf8.count > nameWidth {
      nameWidth = min(Self.maximumNameWidth, max(nameWidth, escapingControls(name).count))
    }
    return nameWidth < Self.maximumNameWidth
  }

  /// How many files are in a state.
  func count(of state: FileState) -> Int { counts[state] ?? 0 }

  /// How many files are known.
  var knownCount: Int { totals.files - count(of: .unknown) }
}
