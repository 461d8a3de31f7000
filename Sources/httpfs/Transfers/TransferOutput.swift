import CLinux
import Glibc
import LinuxSystem
import TransferDisplay

/// Shows transfers: bars on a terminal, plain lines elsewhere, or JSON lines.
///
/// Bars and lines go to standard error, so that standard output can carry a file; JSON goes to
/// standard output.
struct TransferOutput {
  private enum Style {
    case bars(TerminalPainter, isUTF8: Bool)
    case lines(PlainReporter)
    case json(JSONReporter)
    case errorsOnly
    /// Questions, of which a terminal shows only how many are answered; nil elsewhere.
    case questions(TerminalPainter?, String)
  }

  /// A line about the run.
  struct Notice: Sendable {
    let text: String
    /// Whether it is printed also with `--quiet`.
    var isError = false
  }

  private var style: Style
  private let isQuiet: Bool
  /// Why standard output is incomplete; nil also if its reader is gone.
  private(set) var failure: CommandFailure?
  private let start = ContinuousClock.now

  /// Chooses the style.
  init(json: Bool, quiet: Bool) {
    isQuiet = quiet
    if json {
      style = .json(JSONReporter())
    } else if quiet {
      style = .errorsOnly
    } else if isatty(STDERR_FILENO) == 1, environmentVariable("TERM") != "dumb" {
      let isUTF8 = TerminalTraits.isUTF8
      let painter = TerminalPainter(color: TerminalTraits.color, isUTF8: isUTF8)
      style = .bars(painter, isUTF8: isUTF8)
    } else {
      style = .lines(PlainReporter())
    }
  }

  /// The output for requests that bring no files of the user, such as directory listings.
  ///
  /// Their `purpose` is text such as "reading directory listings".
  static func ofQuestions(_ purpose: String, json: Bool, quiet: Bool) -> TransferOutput {
    var output = TransferOutput(json: json, quiet: quiet)
    if case .bars(let painter, _) = output.style {
      output.style = .questions(painter, purpose)
    } else {
      output.style = .questions(nil, purpose)
    }
    return output
  }

  /// Writes the summary of a command that ends before its first transfer, if it writes JSON.
  static func endWithoutTransfers(json: Bool) {
    guard json else { return }
    // The command fails for another reason.
    try? printToStandardOutput(JSONReporter.summary(of: DisplaySnapshot(items: [], elapsed: 0)))
  }

  /// Shows the current state.
  mutating func show(_ snapshot: DisplaySnapshot, notices: [Notice]) {
    draw(snapshot, notices: notices, isLast: false)
  }

  /// Shows the final state.
  mutating func finish(_ snapshot: DisplaySnapshot, notices: [Notice]) {
    draw(snapshot, notices: notices, isLast: true)
  }

  /// Leaves the terminal as it is, for a process that ends at once.
  mutating func abandon() {}

  private mutating func draw(_ snapshot: DisplaySnapshot, notices: [Notice], isLast: Bool) {
    let notices = notices.filter { !isQuiet || $0.isError }.map { DisplayLine($0.text) }
    let newlySettled = snapshot.changing.lazy.map { snapshot.items[$0] }.filter(\.state.isSettled)
    switch style {
    case .bars(var painter, let isUTF8):
      let now = (ContinuousClock.now - start) / .seconds(1)
      var permanent = notices
      permanent += newlySettled.compactMap(\.outcome)
      let size = terminalSize(of: STDERR_FILENO)
      if isLast {
        if snapshot.items.count > 1 { permanent += SummaryText.lines(for: snapshot) }
        write(painter.draw([], above: permanent, columns: size.columns))
      } else if !permanent.isEmpty || painter.shouldDraw(now: now) {
        let screen = ProgressScreen(columns: size.columns, rows: size.rows, isUTF8: isUTF8)
        write(painter.draw(screen.lines(of: snapshot), above: permanent, columns: size.columns))
      }
      style = .bars(painter, isUTF8: isUTF8)
    case .lines(var reporter):
      var lines = notices.map(\.text)
      lines += reporter.lines(for: snapshot)
      if isLast, snapshot.items.count > 1 {
        lines += SummaryText.lines(for: snapshot).map(\.text)
      }
      for line in lines { printToStandardError(line) }
      style = .lines(reporter)
    case .json(var reporter):
      var bytes = reporter.progress(for: snapshot)
      if isLast { bytes += JSONReporter.summary(of: snapshot) }
      for notice in notices { printToStandardError(notice.text) }
      // If it cannot be written, the transfers continue.
      do throws(CommandFailure) {
        if !bytes.isEmpty { try printToStandardOutput(bytes) }
      } catch {
        if failure == nil, !error.isBrokenPipe { failure = error }
      }
      style = .json(reporter)
    case .questions(var painter, let purpose):
      let count = snapshot.totals.settledCount
      let text = "\(purpose): \(count) of \(snapshot.items.count)"
      if let bytes = painter?.draw(
        isLast ? [] : [DisplayLine(text)], above: notices,
        columns: terminalSize(of: STDERR_FILENO).columns)
      {
        write(bytes)
      } else {
        for notice in notices { printToStandardError(notice.text) }
      }
      style = .questions(painter, purpose)
    case .errorsOnly:
      for notice in notices { printToStandardError(notice.text) }
      for item in newlySettled {
        if case .failed = item.state, let line = item.outcome { printToStandardError(line.text) }
      }
    }
  }

  private func write(_ bytes: [UInt8]) { try? StreamCalls.write(bytes, to: STDERR_FILENO) }
}

/// The size of a terminal; 24 × 80 if unknown.
func terminalSize(of descriptor: Int32) -> (rows: Int, columns: Int) {
  var size = winsize()
  guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0
  else { return (24, 80) }
  return (Int(size.ws_row), Int(size.ws_col))
}
