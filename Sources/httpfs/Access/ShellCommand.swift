import Glibc
import LinuxSystem

/// One run of a shell command, with limits on its time and its output.
///
/// It runs in its own process group, so that all its processes can be killed. It gets no descriptor
/// of this process except three, and no terminal to read from.
struct ShellCommand {
  enum Ending: Equatable {
    case exited(Int32)
    case signalled(Int32)
    /// It was killed at its time limit.
    case timedOut
  }

  struct Outcome {
    var ending = Ending.timedOut
    var output: [UInt8] = []
    var errors: [UInt8] = []
  }

  /// The script for `/bin/sh -c`.
  let script: String
  /// Variables to add to, or to replace in, the environment of this process.
  let variables: [(name: String, value: String)]
  /// Further output is read and dropped.
  private static let outputLimit = 64 << 10

  /// `POSIX_SPAWN_SETPGROUP`, `…SETSIGDEF` and `…SETSIGMASK` of spawn.h.
  private static let flags: Int16 = 0x02 | 0x04 | 0x08

  /// Runs the command until it ends.
  ///
  /// This waits, so do not call it on a thread that others wait for.
  ///
  /// - Parameters:
  ///   - limit: its time limit.
  ///   - onStart: called with its process group.
  /// - Returns: its result and its output.
  /// - Throws: if it cannot be started.
  func run(
    within limit: Duration, onStart: (pid_t) -> Void
  ) throws(ErrorNumber) -> Outcome {
    let deadline = ContinuousClock.now + limit
    let output = try Self.makePipe()
    defer { close(output.read) }
    let errors: (read: Int32, write: Int32)
    do throws(ErrorNumber) {
      errors = try Self.makePipe()
    } catch {
      close(output.write)
      throw error
    }
    defer { close(errors.read) }
    let child: pid_t
    do throws(ErrorNumber) {
      child = try start(output: output.write, errors: errors.write)
    } catch {
      close(output.write)
      close(errors.write)
      throw error
    }
    close(output.write)
    close(errors.write)
    onStart(child)
    return Self.follow(child, output.read, errors.read, until: deadline)
  }

  private static func makePipe() throws(ErrorNumber) -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw .last }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    // A process that it leaves behind may keep the other end open.
    _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
    return (ends[0], ends[1])
  }

  private func start(output: Int32, errors: Int32) throws(ErrorNumber) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
    // Libraries open some descriptors without the close-on-exec flag.
    for descriptor in Self.openDescriptors() where descriptor > STDERR_FILENO {
      posix_spawn_file_actions_addclose(&actions, descriptor)
    }
    // This process blocks some signals in its threads, because it waits for them.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for number in [SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGUSR1, SIGCHLD] {
      sigaddset(&signals, number)
    }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Self.flags)
    posix_spawnattr_setpgroup(&attributes, 0)
    let names = variables.map { $0.name + "=" }
    var environment = Self.environment().filter { variable in
      !names.contains { variable.starts(with: $0.utf8CString.dropLast()) }
    }
    environment += variables.map { Array("\($0.name)=\($0.value)".utf8CString) }
    var child: pid_t = 0
    let code = withCStrings(["/bin/sh", "-c", script, "sh"]) { arguments in
      Self.withPointers(environment) { environment in
        posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environment)
      }
    }
    guard code == 0 else { throw ErrorNumber(rawValue: code) }
    return child
  }

  /// A descriptor that is closed meanwhile does no harm.
  private static func openDescriptors() -> [Int32] {
    guard let directory = opendir("/proc/self/fd") else { return [] }
    defer { closedir(directory) }
    var descriptors: [Int32] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if let number = Int32(name) { descriptors.append(number) }
    }
    return descriptors
  }

  /// This process's variables as bytes, because they need not be UTF-8.
  private static func environment() -> [[CChar]] {
    var variables: [[CChar]] = []
    var next = environ
    while let variable = next.pointee {
      variables.append(Array(UnsafeBufferPointer(start: variable, count: strlen(variable) + 1)))
      next += 1
    }
    return variables
  }

  private static func withPointers<Result>(
    _ strings: [[CChar]], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
  ) -> Result {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
  }

  private static func follow(
    _ child: pid_t, _ output: Int32, _ errors: Int32, until deadline: ContinuousClock.Instant
  ) -> Outcome {
    var outcome = Outcome()
    var (isOutputOpen, areErrorsOpen) = (true, true)
    while true {
      var status: Int32 = 0
      let ended = waitpid(child, &status, WNOHANG)
      // All output from before its end is available.
      if isOutputOpen { isOutputOpen = read(output, into: &outcome.output) }
      if areErrorsOpen { areErrorsOpen = read(errors, into: &outcome.errors) }
      if ended == child {
        let signal = status & 0x7F
        outcome.ending = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
        return outcome
      }
      if ended < 0, errno != EINTR { return outcome }
      if ContinuousClock.now >= deadline {
        kill(-child, SIGKILL)
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        return outcome
      }
      // poll(2) skips negative descriptors, so closed ends are not waited for.
      var waits = [
        pollfd(fd: isOutputOpen ? output : -1, events: Int16(POLLIN), revents: 0),
        pollfd(fd: areErrorsOpen ? errors : -1, events: Int16(POLLIN), revents: 0),
      ]
      _ = poll(&waits, 2, isOutputOpen || areErrorsOpen ? 20 : 2)
    }
  }

  /// Reads the available bytes.
  ///
  /// - Returns: whether more may follow.
  private static func read(_ descriptor: Int32, into bytes: inout [UInt8]) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count > 0 {
        bytes += buffer[..<min(count, max(0, outputLimit - bytes.count))]
        continue
      }
      if count < 0, errno == EINTR { continue }
      return count < 0 && errno == EAGAIN
    }
  }
}
