internal import TextFormat

/// The part of a report that precedes the files but depends on all of them.
package struct StatusSums: Sendable {
  package private(set) var totals = StatusTotals()
  private var counts: [FileState: Int] = [:]
  /// What the files that are being downloaded still need, in bytes, and their speed in bytes per
  /// second.
  private var bytesLeft = 0.0
  private var speed = 0.0
  /// In how many files a look-up or open waits.
  private(set) var waitingOpenCount = 0
  /// The columns of a terminal that names take in `.status`.
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
    if file.waitingOpen != nil { waitingOpenCount += 1 }
    guard file.etaSeconds != nil, let length = file.length else { return }
    bytesLeft += max(0, Double(length) - Double(file.cachedBytes))
    speed += max(0, Double(file.speedBytesPerSecond))
  }

  /// The time until the files that are being downloaded are complete, in seconds, if they keep
  /// their speed together; nil if none is.
  ///
  /// The file that needs longest says little: it may have just begun, or be stalled.
  package var etaSeconds: Double? { speed > 0 ? bytesLeft / speed : nil }

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
    // A name has at most as many columns as bytes, except for escaped control characters.
    if name.utf8.count > nameWidth {
      nameWidth = min(Self.maximumNameWidth, max(nameWidth, displayWidth(escapingControls(name))))
    }
    return nameWidth < Self.maximumNameWidth
  }

  /// How many files are in a state.
  package func count(of state: FileState) -> Int { counts[state] ?? 0 }

  /// How many files are known.
  var knownCount: Int { totals.files - count(of: .unknown) }
}
