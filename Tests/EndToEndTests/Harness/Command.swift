import Glibc

/// The result of a command that ran to its end.
struct CommandResult {
  let commandLine: String
  let ending: ChildProcess.Ending
  let output: String
  let error: String
  let duration: Duration

  var succeeded: Bool { ending == .exited(0) }
}

/// Runs a command to its end; kills it and throws if it still runs after `limit`.
func run(
  _ arguments: [String], environment: [String: String] = [:], input: ChildProcess.Input = .none,
  within limit: Duration = .seconds(60)
) throws -> CommandResult {
  let start = ContinuousClock.now
  let child = try ChildProcess(arguments, environment: environment, input: input)
  guard let ending = child.wait(within: limit) else {
    child.kill()
    throw HarnessError("still running after \(limit): \(child.commandLine)")
  }
  return CommandResult(
    commandLine: child.commandLine, ending: ending, output: child.standardOutput,
    error: child.standardError, duration: .now - start)
}

/// Runs a command that must succeed.
///
/// - Returns: its standard output.
@discardableResult
func output(
  of arguments: [String], environment: [String: String] = [:], input: ChildProcess.Input = .none,
  within limit: Duration = .seconds(60)
) throws -> String {
  let result = try run(arguments, environment: environment, input: input, within: limit)
  guard result.succeeded else {
    throw HarnessError("\(result.commandLine): \(result.ending): \(result.error)")
  }
  return result.output
}

/// Runs a shell script that must succeed.
///
/// - Returns: its standard output.
@discardableResult
func shell(_ script: String, within limit: Duration = .seconds(60)) throws -> String {
  try output(of: ["bash", "-euo", "pipefail", "-c", script], within: limit)
}

/// Quotes `text` as one shell word.
func quoted(_ text: String) -> String {
  "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#)
    + "'"
}
