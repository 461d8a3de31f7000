/// Names that desktops look for in every directory although no user wants them.
///
/// Listings do not show them, and no request is sent for them.
package struct HiddenNames: Sendable {
  /// The names that are always hidden, compared without case.
  package static let common = [
    ".Trash", ".hidden", ".directory", ".DS_Store", ".xdg-volume-info", "autorun.inf",
    "desktop.ini",
    "Thumbs.db",
  ]

  /// The waste bin of each user: `.Trash-1000`.
  private static let prefix = ".trash-"

  private let names: Set<String>

  /// The common names, and `others`.
  package init(_ others: [String] = []) {
    names = Set((Self.common + others).map { $0.lowercased() })
  }

  package func contains(_ name: String) -> Bool {
    let name = name.lowercased()
    return names.contains(name) || name.hasPrefix(Self.prefix)
  }
}
