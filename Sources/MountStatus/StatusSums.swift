/// What stands before the files in a report and is known only when all of them have been looked at.
public struct StatusSums: Sendable {
  public private(set) var totals = StatusTotals()
  private var counts: [FileState: Int] = [:]
  /// When the last file is complete, in seconds: they are fetched side by side.
  private(set) var etaSeconds: Double?
  /// The width of the column of names in `.status`.
  private(set) var nameWidth = 4

  /// One very long name does not push all figures off the screen.
  public static let maximumNameWidth = 60

  public init() {}

  public init(of files: some Sequence<FileStatus>) {
    for file in files {
      add(file)
      widen(for: file.name)
    }
  }

  public mutating func add(_ file: FileStatus) {
    totals.add(file)
    counts[file.state, default: 0] += 1
    if let eta = file.etaSeconds { etaSeconds = max(etaSeconds ?? eta, eta) }
  }

  /// Adds files of which nothing is known.
  public mutating func addUnknown(count: Int) {
    totals.files += count
    counts[.unknown, default: 0] += count
  }

  /// Makes the column of names as wide as `name` needs.
  ///
  /// - Returns: whether it can be wider still.
  @discardableResult
  public mutating func widen(for name: String) -> Bool {
    // No name has more characters than bytes, but for the few with control characters.
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
