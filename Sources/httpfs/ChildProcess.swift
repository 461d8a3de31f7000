import Glibc
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
  var pipe: [Int32] = [-1, -1]
  guard Glibc.pipe(&pipe) == 0 else { throw .last }
  let readEnd = pipe[0]
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO)
  for descriptor in pipe { posix_spawn_file_actions_addclose(&actions, descriptor) }
  defer {
    posix_spawn_file_actions_destroy(&actions)
    close(readEnd)
  }

  var child: pid_t = 0
  let code = withCStrings([program] + arguments) { arguments in
    withCStrings(environmentInCLocale()) { environment in
      posix_spawnp(&child, program, &actions, nil, arguments, environment)
    }
  }
  close(pipe[1])
  guard code == 0 else { throw ErrorNumber(rawValue: code) }

  var output: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 4096)
  while true {
    let count = read(readEnd, &buffer, buffer.count)
    if count > 0 { output += buffer[..<count] }
    if count == 0 || (count < 0 && errno != EINTR) { break }
  }
  var status: Int32 = 0
  while waitpid(child, &status, 0) < 0 {
    guard errno == EINTR else { throw .last }
  }
  // WIFEXITED, WEXITSTATUS and WTERMSIG of wait(2), which are macros.
  let signal = status & 0x7F
  return ChildProcessResult(
    exitCode: signal == 0 ? (status >> 8) & 0xFF : 128 + signal,
    errorOutput: String(decoding: output, as: UTF8.self))
}

/// This process's environment with `LC_ALL=C`.
private func environmentInCLocale() -> [String] {
  var variables: [String] = []
  var next = environ
  while let variable = next.pointee {
    let text = String(cString: variable)
    if !text.hasPrefix("LC_ALL=") { variables.append(text) }
    next += 1
  }
  return variables + ["LC_ALL=C"]
}

/// Calls `body` with a NULL-terminated array of C strings, valid during the call.
func withCStrings<Result>(
  _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
  let copies = strings.map { strdup($0) }
  defer { for copy in copies { free(copy) } }
  return body(copies + [nil])
}
