import MountStatus
import TextFormat

/// The capabilities of a terminal.
struct Typesetting: Sendable {
  /// The width of the terminal.
  let columns: Int

  /// Whether it shows more than ASCII.
  let isUTF8: Bool

  /// The sign for text that was cut.
  var ellipsis: String { isUTF8 ? "…" : "..." }

  /// Makes everything in a text of a server or a user visible that would disturb a terminal.
  func shown(_ text: String) -> String {
    // No screen shows this many characters.
    displayable(String(text.prefix(2048)), isUTF8: isUTF8)
  }
}

extension FileState {
  var style: LineStyle {
    switch self {
    case .downloading, .streaming, .prefetching: .good
    case .waiting, .stale, .offline, .paused: .warning
    case .failed: .bad
    case .unknown: .faint
    case .idle, .complete: .plain
    }
  }
}
