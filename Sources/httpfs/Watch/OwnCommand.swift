import Glibc
import LinuxSystem
import Synchronization

/// Runs a subcommand of this program as a child process that queries a mount in place of this
/// process.
///
/// A process that waits for a hanging mount cannot always be killed, not even by SIGKILL: the
/// kernel keeps it until its request is answered. So a process that must not hang uses a child.
final class OwnCommand: Sendable {
  struct Result {
    /// The exit code; 128 + the signal if a signal ended the process.
    let exitCode: Int32
    let output: [UInt8]
    let errorOutput: String

    /// Why it failed, in one line; nil on success.
    var failure: String? {
      guard exitCode != 0 else { return nil }
      let line = errorOutput.split(separator: "\n").first ?? "exit code \(exitCode)"
      return String(line.hasPrefix("httpfs: ") ? line.dropFirst("httpfs: ".count) : line)
    }
  }

  /// The process, until it was waited for.
  private let child = Mutex<pid_t?>(nil)

  /// Runs the command until it ends; one at a time.
  ///
  /// - Parameter arguments: the words after `httpfs`.
  /// - Returns: Its result and its output.
  /// - Throws: The error of socketpair(2) or posix_spawn(3).
  func run(_ arguments: [String]) throws(ErrorNumber) -> Result {
    let output = try Self.channel()
    defer { close(output.readEnd) }
    let errors: (readEnd: Int32, writeEnd: Int32)
    do {
      errors = try Self.channel()
    } catch {
      close(output.writeEnd)
      throw error
    }
    defer { close(errors.readEnd) }
    let code = start(arguments, output: output.writeEnd, errors: errors.writeEnd)
    for end in [output.writeEnd, errors.writeEnd] { close(end) }
    guard code == 0 else { throw ErrorNumber(rawValue: code) }
    let bytes = Self.read([output.readEnd, errors.readEnd])
    return Result(
      exitCode: waitForEnd(), output: bytes[0],
      errorOutput: String(decoding: bytes[1], as: UTF8.self))
  }

  /// Kills the process, if there is one, without waiting for its end.
  func kill() {
    child.withLock { child in
      if let child { _ = Glibc.kill(child, SIGKILL) }
    }
  }

  /// A channel from the child to this process.
  ///
  /// It is not a pipe: a socket can be close-on-exec from its creation, and its end shows only when
  /// no other child holds the other end.
  private static func channel() throws(ErrorNumber) -> (readEnd: Int32, writeEnd: Int32) {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw .last }
    return (ends[0], ends[1])
  }

  /// - Returns: the error of posix_spawn(3), 0 on success.
  private func start(_ arguments: [String], output: Int32, errors: Int32) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    // A process group of its own, so that keys of the terminal do not signal it.
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    return withCStrings(["httpfs"] + arguments) { argv in
      child.withLock { child in
        var processID: pid_t = 0
        let code = posix_spawn(&processID, "/proc/self/exe", &actions, &attributes, argv, environ)
        if code == 0 { child = processID }
        return code
      }
    }
  }

  private func waitForEnd() -> Int32 {
    guard let processID = child.withLock({ $0 }) else { return -1 }
    // Not reaped yet, so that kill() cannot hit a process that reuses its number.
    var information = siginfo_t()
    while waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    return child.withLock { child in
      child = nil
      var status: Int32 = 0
      while waitpid(processID, &status, 0) < 0 {
        if errno != EINTR { return -1 }
      }
      // WIFEXITED, WEXITSTATUS and WTERMSIG of wait(2), which are macros.
      let signal = status & 0x7F
      return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
  }

  /// Reads from several descriptors to their ends.
  private static func read(_ descriptors: [Int32]) -> [[UInt8]] {
    var bytes = descriptors.map { _ in [UInt8]() }
    var open = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while open.contains(where: { $0.fd >= 0 }) {
      guard poll(&open, nfds_t(open.count), -1) > 0 else { continue }
      for index in open.indices where open[index].fd >= 0 && open[index].revents != 0 {
        let count = Glibc.read(open[index].fd, &buffer, buffer.count)
        if count > 0 {
          bytes[index] += buffer[..<count]
        } else if count == 0 || errno != EINTR {
          // poll(2) ignores negative descriptors.
          open[index].fd = -1
        }
      }
    }
    return bytes
  }
}
