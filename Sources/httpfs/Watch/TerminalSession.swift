import Glibc
import MountView

/// A terminal that is used as a whole: each key comes as it is pressed, and what was on the screen
/// comes back at the end.
final class TerminalSession {
  private var saved = termios()
  private var isEntered = false

  /// Whether the standard descriptors are a terminal for it.
  static var isPossible: Bool {
    isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && TerminalTraits.movesCursor
  }

  deinit { leave() }

  /// Takes the terminal over; also again, after a stop.
  func enter() throws(CommandFailure) {
    if !isEntered {
      guard tcgetattr(STDIN_FILENO, &saved) == 0 else {
        throw CommandFailure("cannot ask the terminal for its modes", .last)
      }
    }
    isEntered = true
    var raw = saved
    cfmakeraw(&raw)
    // Line feeds go on as they do, should anything else write here.
    raw.c_oflag = saved.c_oflag
    guard tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0 else {
      throw CommandFailure("cannot set the modes of the terminal", .last)
    }
    try printToStandardOutput(Array(ScreenPainter.enter.utf8))
  }

  /// Gives the terminal back.
  func leave() {
    guard isEntered else { return }
    isEntered = false
    // A terminal that is gone needs nothing.
    _ = try? printToStandardOutput(Array(ScreenPainter.leave.utf8))
    tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
  }
}
