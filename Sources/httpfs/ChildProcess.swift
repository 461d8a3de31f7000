import LinuxSystem

/// The result of a child process.
struct ChildProcessResult {
  /// The exit code; 128 + the signal if a signal ended the process.
  let exitCode: Int32

  /// What it wrote to standard error.
  let errorOutput: String
}

/// Runs `program`, which is looked up in `PATH`, until it exits.
///
/// It runs in the C locale, so that its messages can be read, and shares standard output with this
/// process.
///
/// - Parameters:
///   - program: The name of the program.
///   - arguments: Its arguments, without the name.
/// - Returns: The result.
/// - Throws: The error of pipe(2) or posix_spawnp(3), such as `ENOENT`.
func runChildProcess(
  _ program: String, _ arguments: [String]
) throws(ErrorNumber) -> ChildProcessResult {
  var errors = try ChildPipe()
  var child = ChildProgram(.named(program), [program] + arguments)
  child.variables = [("LC_ALL", "C")]
  child.errorOutput = .copy(of: errors.writeEnd)
  let process = try child.start()
  errors.closeWriteEnd()
  let output = (try? SystemCalls.contents(of: errors.readEnd)) ?? []
  return ChildProcessResult(
    exitCode: try process.waitForEnd().exitCode,
    errorOutput: String(decoding: output, as: UTF8.self))
}
