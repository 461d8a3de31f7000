import ArgumentParser
import Glibc
import MountStatus

/// `httpfs status`: what a mount is doing, once or live.
struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show what a mount is doing.")

  @Argument(help: "Where the list is mounted.", completion: .directory)
  var mountpoint: String

  @Flag(help: "Print the JSON of '.status.json'.")
  var json = false

  @Flag(help: "Redraw every second, until Ctrl-C or unmount.")
  var watch = false

  func validate() throws {
    if json && watch { throw ValidationError("--json and --watch exclude each other.") }
  }

  func run() throws {
    try reportingFailure {
      let mount = try httpfsMount(at: mountpoint)
      if watch {
        try keepWatching(mount)
      } else {
        try printToStandardOutput(
          try read(json ? ".status.json" : ".status", of: mount.mountpoint))
      }
    }
  }

  private func read(_ name: String, of mountpoint: String) throws(CommandFailure) -> [UInt8] {
    do {
      return try contents(ofFile: "\(mountpoint)/\(name)")
    } catch {
      let advice =
        error.code == ENOTCONN
        ? "; the httpfs process has died: run 'httpfs unmount \(self.mountpoint)'" : ""
      throw CommandFailure("cannot read '\(mountpoint)/\(name)': \(error)\(advice)")
    }
  }

  private func keepWatching(_ mount: MountTable.Entry) throws(CommandFailure) {
    let isTerminal = isatty(STDOUT_FILENO) == 1
    while true {
      let content: [UInt8]
      do {
        content = try read(".status.json", of: mount.mountpoint)
      } catch {
        if try !currentMountTable().entries.contains(mount) { return }
        throw error
      }
      let report: StatusReport
      do {
        report = try StatusReport(json: content)
      } catch {
        throw CommandFailure("cannot read '\(mount.mountpoint)/.status.json': \(error)")
      }
      try printToStandardOutput(Array((isTerminal ? drawn(report) : report.text() + "\n").utf8))
      sleep(1)
    }
  }

  /// The report over what was drawn before: the cursor goes home, each line is cleared behind its
  /// end, then the rest of the screen, so that nothing flickers.
  private func drawn(_ report: StatusReport) -> String {
    let size = terminalSize()
    // The last row stays free for the cursor.
    let screen = report.screen(rowCount: max(1, size.rows - 1), columnCount: size.columns)
    var text = "\u{1B}[H"
    for line in screen.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      text += line + "\u{1B}[K\n"
    }
    return text + "\u{1B}[J"
  }

  /// The size of the terminal at standard output; 24 × 80 where it does not tell.
  private func terminalSize() -> (rows: Int, columns: Int) {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0
    else { return (24, 80) }
    return (Int(size.ws_row), Int(size.ws_col))
  }
}
