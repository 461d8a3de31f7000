import Glibc
import LinuxSystem
import MountView

/// A terminal in full-screen use: each key is read when it is pressed, and the previous screen is
/// restored at the end.
final class TerminalSession {
  private var saved = termios()
  private var isEntered = false

  /// Whether the standard descriptors are a suitable terminal.
  static var isPossible: Bool {
    isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && TerminalTraits.movesCursor
  }

  deinit { leave() }

  /// Takes over the terminal; also again, after a stop.
  func enter() throws(CommandFailure) {
    if !isEntered {
      guard tcgetattr(STDIN_FILENO, &saved) == 0 else {
        throw CommandFailure("cannot ask the terminal for its modes", .last)
      }
    }
    isEntered = true
    var raw = saved
    cfmakeraw(&raw)
    // Keep the handling of line feeds, in case something else writes here.
    raw.c_oflag = saved.c_oflag
    guard tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0 else {
      throw CommandFailure("cannot set the modes of the terminal", .last)
    }
    try printToStandardOutput(Array(ScreenPainter.enter.utf8))
  }

  /// Restores the terminal.
  func leave() {
    guard isEntered else { return }
    isEntered = false
    // If the terminal is gone, nothing needs restoring.
    _ = try? printToStandardOutput(Array(ScreenPainter.leave.utf8))
    tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
  }
}
