import ArgumentParser
import Glibc
import LinuxSystem
import Logging
import TextFormat

/// Why a command failed: the text after `httpfs: ` on standard error.
struct CommandFailure: Error, CustomStringConvertible {
  /// The messages, each of one line; usually one.
  let messages: [String]

  /// Whether the reader of the output is gone (`EPIPE`), which needs no message.
  private(set) var isBrokenPipe = false

  /// The exit code of a command that ends with it.
  private(set) var exitCode = ExitCode.failure

  init(_ message: String) { messages = [message] }

  init(messages: [String]) { self.messages = messages }

  /// A failed system call: `cannot open list 'x': No such file or directory`.
  init(_ action: String, _ error: ErrorNumber) {
    self.init("\(action): \(error)")
    isBrokenPipe = error.rawValue == EPIPE
  }

  /// The end of a command by `--max-time`.
  static var overTime: CommandFailure {
    CommandFailure("not finished within --max-time").ending(with: .timeout)
  }

  var description: String { messages.joined(separator: "\n") }

  /// The same failure of a command that ends with another code.
  func ending(with exit: TransferExit) -> CommandFailure {
    var failure = self
    failure.exitCode = exit.code
    return failure
  }
}

/// Runs the work of a subcommand; prints a failure as `httpfs: …` and exits with its code.
///
/// Control characters of its messages are escaped.
///
/// ArgumentParser's own errors (bad usage, explicit exit codes) pass unchanged.
func reportingFailure(_ body: () throws -> Void) throws {
  do {
    try body()
  } catch let failure as CommandFailure {
    for message in failure.messages {
      let message = escapingControls(Redaction.hidingArguments(in: "httpfs: \(message)"))
      printToStandardError(Journal.marked(message, as: .error))
    }
    throw failure.exitCode
  }
}

func printToStandardError(_ line: String) {
  // There is nowhere to report a failure of this.
  _ = try? StreamCalls.write(Array((line + "\n").utf8), to: STDERR_FILENO)
}

/// Writes the whole of `text` to standard output, bypassing the buffer of stdio.
///
/// - Throws: ``CommandFailure`` if it cannot be written, for example because the disk is full.
func printToStandardOutput(_ text: [UInt8]) throws(CommandFailure) {
  do {
    try StreamCalls.write(text, to: STDOUT_FILENO)
  } catch {
    throw CommandFailure("cannot write to standard output", error)
  }
}
