import MountStatus
import TransferDisplay

/// What a terminal can show.
struct Typesetting: Sendable {
  /// The width of the terminal.
  let columns: Int

  /// Whether it shows more than ASCII.
  let isUTF8: Bool

  /// What stands for what was cut.
  var ellipsis: String { isUTF8 ? "…" : "..." }

  /// Text of a server or a user with all that disturbs a terminal made visible.
  func shown(_ text: String) -> String {
    // Nothing of so many characters is read on a screen.
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
