import ArgumentParser
import Glibc
import LinuxSystem

/// `--daemon`: the command starts itself again as a process in a new session, and returns when that
/// process reports that the mount is ready.
///
/// It starts a new process instead of forking, so that the child starts as clean as the parent did.
/// The child reports errors to the same standard error until it has mounted.
enum DaemonProcess {
  /// `POSIX_SPAWN_SETSID` of glibc's spawn.h, which Swift does not see (it is a GNU extension).
  static let newSession: Int16 = 0x80

  private static let variable = "HTTPFS_DAEMON"

  /// Whether this process is the one in the background.
  static var isDaemon: Bool { environmentVariable(variable) != nil }

  /// Starts the background process; returns when it has mounted.
  ///
  /// - Throws: `ExitCode` of the child, which has already reported why, or ``CommandFailure``.
  static func start() throws {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw CommandFailure("cannot make a pipe", .last) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    posix_spawnattr_setflags(&attributes, Self.newSession)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
      close(ends[0])
    }
    setenv(variable, "1", 1)
    var child: pid_t = 0
    let code = posix_spawn(
      &child, "/proc/self/exe", &actions, &attributes, Secrecy.originalArguments, environ)
    close(ends[1])
    guard code == 0 else {
      throw CommandFailure("cannot start the background process", ErrorNumber(rawValue: code))
    }
    let line = firstLine(of: ends[0])
    guard line.isEmpty else { return try printToStandardOutput(line) }
    // The child has ended without mounting and has reported why.
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    let exitCode = status & 0x7F == 0 ? (status >> 8) & 0xFF : 1
    throw ExitCode(exitCode == 0 ? 1 : exitCode)
  }

  /// Detaches the background process from the terminal, once it has mounted.
  static func detach() {
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    guard null >= 0 else { return }
    for descriptor in STDIN_FILENO...STDERR_FILENO { dup2(null, descriptor) }
    if null > STDERR_FILENO { close(null) }
  }

  private static func firstLine(of descriptor: Int32) -> [UInt8] {
    var line: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1024)
    while line.last != UInt8(ascii: "\n") {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return [] }
      line += buffer[..<count]
    }
    return line
  }
}
