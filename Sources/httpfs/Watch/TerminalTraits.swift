import Glibc

/// Properties of the terminal from the environment.
enum TerminalTraits {
  /// Whether the locale uses UTF-8, by the variables that determine it.
  static var isUTF8: Bool {
    let value = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(environmentVariable)
      .first { !$0.isEmpty }
    let name = (value ?? "").lowercased()
    return name.contains("utf-8") || name.contains("utf8")
  }

  /// Whether to use colours: not if `NO_COLOR` is set and not empty.
  static var color: Bool { environmentVariable("NO_COLOR").map(\.isEmpty) ?? true }

  /// Whether the terminal can move its cursor.
  static var movesCursor: Bool {
    let kind = environmentVariable("TERM") ?? ""
    return !kind.isEmpty && kind != "dumb"
  }
}
