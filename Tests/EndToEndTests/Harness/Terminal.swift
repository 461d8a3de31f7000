import Glibc

/// A pseudo-terminal with a command on it, like a user's window.
///
/// The command leads a session that the terminal controls: keys such as Ctrl-C and a change of size
/// reach it as signals. Its two outputs are merged, as on a screen.
final class Terminal {
  /// The command that runs on the terminal.
  let process: ChildProcess
  private let master: CInt
  private let transcript: TerminalTranscript
  private let initialSize: Size
  /// Each new size, with the count of output bytes before it.
  private var resizes: [(byteCount: Int, size: Size)] = []

  private struct Size {
    let columns: Int
    let rows: Int

    /// The size in the kernel's form.
    var window: winsize {
      winsize(ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
    }
  }

  /// Opens a terminal and starts a command on it.
  ///
  /// - Parameters:
  ///   - arguments: the command line.
  ///   - environment: variables that add to or replace the inherited ones.
  ///   - columns: the width of the window in cells.
  ///   - rows: its height in lines.
  /// - Throws: `HarnessError` if there is no pseudo-terminal or the command cannot be started.
  init(
    _ arguments: [String], environment: [String: String] = [:], columns: Int = 80, rows: Int = 24
  ) throws {
    let size = Size(columns: columns, rows: rows)
    var window = size.window
    var (master, slave): (CInt, CInt) = (-1, -1)
    var name = [CChar](repeating: 0, count: 128)
    guard openpty(&master, &slave, &name, nil, &window) == 0 else {
      throw HarnessError.systemCall("openpty")
    }
    // No other child starts in between, because the tests run one at a time.
    for descriptor in [master, slave] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    // Keep it open until the command has it: the output ends when no process has it open.
    defer { close(slave) }
    do {
      let slavePath = String(
        decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      process = try ChildProcess(
        arguments, environment: ["TERM": "xterm-256color"].merging(environment) { $1 },
        input: .terminal(slavePath))
    } catch {
      close(master)
      throw error
    }
    initialSize = size
    self.master = master
    transcript = TerminalTranscript(master: master)
  }

  deinit {
    process.kill()
    transcript.stop()
    close(master)
  }

  /// The output so far: by the command, and by the terminal, which echoes typed text.
  ///
  /// Lines end in CR LF, which the terminal's line discipline makes.
  var output: String { String(decoding: transcript.bytes, as: UTF8.self) }

  /// The screen that a user sees now.
  var screen: ScreenModel {
    var screen = ScreenModel(columns: initialSize.columns, rows: initialSize.rows)
    let bytes = transcript.bytes
    var position = 0
    for resize in resizes {
      screen.write(bytes[position..<resize.byteCount])
      screen.resize(columns: resize.size.columns, rows: resize.size.rows)
      position = resize.byteCount
    }
    screen.write(bytes[position...])
    return screen
  }

  /// Types text; `\r` is the Return key.
  func type(_ text: String) throws {
    let bytes = Array(text.utf8)
    guard write(master, bytes, bytes.count) == bytes.count else {
      throw HarnessError.systemCall("write to the terminal of \(process.commandLine)")
    }
  }

  /// Types Ctrl-C, which sends SIGINT to the processes in the foreground unless they have disabled
  /// that.
  func typeControlC() throws {
    try type("\u{3}")
  }

  /// Changes the size of the window, which sends SIGWINCH to the processes in the foreground.
  func resize(columns: Int, rows: Int) throws {
    let size = Size(columns: columns, rows: rows)
    resizes.append((transcript.bytes.count, size))
    var window = size.window
    guard ioctl(master, UInt(TIOCSWINSZ), &window) == 0 else {
      throw HarnessError.systemCall("TIOCSWINSZ")
    }
  }

  /// Waits until the output contains `text`.
  ///
  /// - Returns: whether it did in time.
  func waitForOutput(_ text: String, within limit: Duration = .seconds(10)) -> Bool {
    Deadline(after: limit).wait { output.contains(text) }
  }

  /// Waits until the screen satisfies `condition`.
  ///
  /// - Returns: whether it did in time.
  func waitForScreen(
    within limit: Duration = .seconds(10), _ condition: (ScreenModel) -> Bool
  ) -> Bool {
    Deadline(after: limit).wait(every: .milliseconds(20)) { condition(screen) }
  }

  /// Waits for the command's end and its remaining output.
  ///
  /// - Returns: nil if it still runs when `limit` has passed.
  func wait(within limit: Duration) -> ChildProcess.Ending? {
    guard let ending = process.wait(within: limit) else { return nil }
    // Usually at once: the kernel hangs the terminal up when the leader of its session ends.
    _ = Deadline(after: .seconds(1)).wait { transcript.hasEnded }
    return ending
  }
}
