/// Names that desktops look for in every directory, without a user who wants them: a listing does not show
/// them, and no server is asked because of them.
public struct HiddenNames: Sendable {
  /// Those that are hidden in any case; of letters in any case.
  public static let common = [
    ".Trash", ".hidden", ".directory", ".DS_Store", ".xdg-volume-info", "autorun.inf",
    "desktop.ini",
    "Thumbs.db",
  ]

  /// Each user's own waste bin: `.Trash-1000`.
  private static let prefix = ".trash-"

  private let names: Set<String>

  /// The common names, and `others`.
  public init(_ others: [String] = []) {
    names = Set((Self.common + others).map { $0.lowercased() })
  }

  public func contains(_ name: String) -> Bool {
    let name = name.lowercased()
    return names.contains(name) || name.hasPrefix(Self.prefix)
  }
}
