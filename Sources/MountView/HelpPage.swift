/// The help page for the keys.
enum HelpPage {
  private static let keys: [(keys: String, meaning: String)] = [
    ("Up Down j k", "select a file"),
    ("PgUp PgDn Home End", "move by a screen, to the first and the last file"),
    ("/", "show only names with a text; Enter keeps it, Esc ends it"),
    ("a", "show only files that are active"),
    ("s", "sort by activity, name, size, percent"),
    ("d", "show or hide the details below"),
    ("p", "pause or resume the file: fetch only what reads wait for"),
    ("P", "pause or resume all files"),
    ("f", "fetch the whole file in the background (prefetch)"),
    ("c", "cancel that"),
    ("e", "evict the file's cached bytes, after a y"),
    ("i", "pin or unpin: keep what is cached, whatever the limit"),
    ("v", "verify the cached bytes by their hashes"),
    ("r", "ask the server about the file again at its next open"),
    ("R", "read the list of the mount again"),
    ("n", "set the connections per file"),
    ("l", "limit the bytes per second of all files together"),
    ("Ctrl-L", "draw the screen again"),
    ("Ctrl-Z", "suspend"),
    ("q Ctrl-C", "quit"),
  ]

  /// The last line of the screen while it has no other content: as many hints as fit.
  static func hints(columns: Int) -> StyledLine {
    var line = StyledLine()
    for (key, meaning) in [
      ("q", "quit"), ("?", "help"), ("/", "filter"), ("s", "sort"), ("a", "active"),
      ("p", "pause"), ("f", "prefetch"), ("c", "cancel"), ("e", "evict"), ("i", "pin"),
      ("v", "verify"), ("r", "refresh"),
    ] {
      let separator = line.pieces.isEmpty ? "" : "  "
      guard line.width + separator.count + key.count + 1 + meaning.count <= columns else { break }
      line.append(separator + key, .strong)
      line.append(" " + meaning, .faint)
    }
    return line
  }

  /// The page, cut if there are not enough rows.
  static func lines(rows: Int) -> [StyledLine] {
    var lines = [StyledLine("Keys of httpfs status --watch", .strong), StyledLine()]
    for (keys, meaning) in keys {
      var line = StyledLine()
      line.append(" " + keys + String(repeating: " ", count: max(1, 20 - keys.utf8.count)), .strong)
      line.append(meaning)
      lines.append(line)
    }
    return Array(lines.prefix(max(1, rows - 1))) + [StyledLine("Any key goes back.", .faint)]
  }
}
