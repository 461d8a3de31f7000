import Glibc
import LinuxSystem

/// One run of a shell command, with limits on its time and its output.
///
/// It runs in its own process group, so that all its processes can be killed. It gets no descriptor
/// of this process except three, and no terminal to read from.
struct ShellCommand {
  struct Outcome {
    /// Nil: it was killed at its time limit.
    var ending: ChildProcess.Ending?
    var output: [UInt8] = []
    var errors: [UInt8] = []
  }

  /// The script for `/bin/sh -c`.
  let script: String
  /// Variables to add to, or to replace in, the environment of this process.
  let variables: [(name: String, value: String)]
  /// Further output is read and dropped.
  private static let outputLimit = 64 << 10

  /// The signals whose action in this process or its parent may differ from the default.
  private static let signals = [SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGUSR1, SIGCHLD]

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
    var output = try ChildPipe()
    var errors = try ChildPipe()
    var program = ChildProgram(.path("/bin/sh"), ["/bin/sh", "-c", script, "sh"])
    program.variables = variables
    program.input = .null
    program.output = .copy(of: output.writeEnd)
    program.errorOutput = .copy(of: errors.writeEnd)
    program.otherDescriptors = .closed
    program.group = .own
    // This process blocks some signals in its threads, because it waits for them.
    program.signals = .unblocked(resetting: Self.signals)
    let child = try program.start()
    output.closeWriteEnd()
    errors.closeWriteEnd()
    onStart(child.processID)
    // A process that the command leaves behind may keep the other end open.
    for descriptor in [output.readEnd, errors.readEnd] {
      _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }
    return Self.follow(child, output.readEnd, errors.readEnd, until: deadline)
  }

  private static func follow(
    _ child: ChildProcess, _ output: Int32, _ errors: Int32,
    until deadline: ContinuousClock.Instant
  ) -> Outcome {
    var outcome = Outcome()
    var (isOutputOpen, areErrorsOpen) = (true, true)
    while true {
      let ended = Result { () throws(ErrorNumber) in try child.endingNow() }
      // All output from before its end is available.
      if isOutputOpen { isOutputOpen = read(output, into: &outcome.output) }
      if areErrorsOpen { areErrorsOpen = read(errors, into: &outcome.errors) }
      switch ended {
      case .success(nil): break
      case .success(let ending):
        outcome.ending = ending
        return outcome
      case .failure: return outcome
      }
      if ContinuousClock.now >= deadline {
        child.killGroup()
        _ = try? child.waitForEnd()
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
