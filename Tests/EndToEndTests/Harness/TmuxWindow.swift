import Foundation
import Glibc

/// A shell in a tmux window.
///
/// It is a realistic terminal, with an alternate screen, modes and a size.
final class TmuxWindow {
  private let directory: String
  private var socket: String { "\(directory)/socket" }

  /// The prompt of the shell.
  static let prompt = "ready> "

  /// Starts a separate tmux, with a shell in its only window.
  ///
  /// - Parameters:
  ///   - columns: the width of the window in cells.
  ///   - rows: its height in lines.
  ///   - environment: variables for the shell.
  /// - Throws: `HarnessError` if tmux or the shell does not start.
  init(
    columns: Int = 80, rows: Int = 24, environment: [String: String] = [:]
  ) throws {
    directory = try TemporaryDirectory.make("tmux")
    let variables = ["LC_ALL": "C.UTF-8"].merging(environment) { $1 }
    let settings = variables.sorted { $0.key < $1.key }.flatMap { ["-e", "\($0.key)=\($0.value)"] }
    try tmux(
      ["-f", "/dev/null", "new-session", "-d", "-x", "\(columns)", "-y", "\(rows)"] + settings
        + ["exec env PS1='\(Self.prompt)' bash --noprofile --norc -i"])
    try tmux(["set-option", "-g", "status", "off"])
    // Without an attached client, the window keeps its given size.
    try tmux(["set-option", "-g", "window-size", "manual"])
    try resize(columns: columns, rows: rows)
    guard waitForScreen({ $0.contains { $0.hasPrefix(Self.prompt.dropLast()) } }) else {
      throw HarnessError("no shell in tmux: \(try lines())")
    }
  }

  deinit {
    _ = try? run(["tmux", "-S", socket, "kill-server"], within: .seconds(10))
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The visible lines, without blanks at their ends.
  func lines() throws -> [String] {
    try tmux(["capture-pane", "-p"]).split(separator: "\n", omittingEmptySubsequences: false).map {
      var line = $0
      while line.last == " " { line.removeLast() }
      return String(line)
    }.dropLast()
  }

  /// The visible text with its colour sequences.
  func styledText() throws -> String { try tmux(["capture-pane", "-p", "-e"]) }

  /// Types text literally.
  func type(_ text: String) throws { try tmux(["send-keys", "-l", "--", text]) }

  /// Presses a key by its name in tmux: `Enter`, `Escape`, `Down`, `C-z`.
  func press(_ key: String) throws { try tmux(["send-keys", key]) }

  /// Types a command line for the shell.
  func enter(_ command: String) throws {
    try type(command)
    try press("Enter")
  }

  func resize(columns: Int, rows: Int) throws {
    try tmux(["resize-window", "-x", "\(columns)", "-y", "\(rows)"])
  }

  /// A format of tmux, such as `#{alternate_on}`.
  func value(of format: String) throws -> String {
    try tmux(["display-message", "-p", format]).trimmingCharacters(in: .newlines)
  }

  /// The modes of the terminal, in the form of `stty -g`.
  func modes() throws -> String {
    try output(of: ["stty", "-g", "-F", try value(of: "#{pane_tty}")], within: .seconds(10))
  }

  /// Waits until the screen satisfies `condition`.
  ///
  /// - Returns: whether it did in time.
  func waitForScreen(
    within limit: Duration = .seconds(30), _ condition: ([String]) throws -> Bool
  ) -> Bool {
    (try? Deadline(after: limit).wait(every: .milliseconds(50)) { try condition(try lines()) })
      ?? false
  }

  @discardableResult
  private func tmux(_ arguments: [String]) throws -> String {
    // Do not use the tmux in which the tests may run.
    try output(
      of: ["env", "-u", "TMUX", "tmux", "-u", "-S", socket] + arguments, within: .seconds(20))
  }
}
