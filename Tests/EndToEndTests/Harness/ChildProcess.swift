import Foundation
import Glibc
import Synchronization

/// A command that runs as a child in its own process group.
///
/// Each command that may block on a mount runs as such a child: a child can be killed at its
/// deadline, a thread of the test process cannot. Output goes to unnamed files, so no pipe fills
/// up.
final class ChildProcess: Sendable {
  /// How a child ended.
  enum Ending: Equatable {
    case exited(CInt)
    case signalled(CInt)

    /// Whether `get` or `put` ended because a transfer failed, for any of the documented reasons.
    var isTransferFailure: Bool {
      if case .exited(let code) = self {
        [1, 2, 3, 6, 9, 19, 22, 23, 24, 32, 60].contains(code)
      } else {
        false
      }
    }
  }

  /// The source of the child's standard input.
  enum Input {
    case none
    case file(String)
    /// A pipe that `write(line:)` feeds.
    case pipe
    /// A terminal, by the path of its slave side, also for standard output and standard error.
    ///
    /// The child leads its own session with this controlling terminal, whose keys reach it.
    case terminal(String)
  }

  private struct State {
    var ending: Ending?
    var inputDescriptor: CInt?
  }

  let processID: pid_t
  let commandLine: String
  private let outputDescriptor: CInt
  private let errorDescriptor: CInt
  private let state: Mutex<State>

  /// Starts `arguments[0]`, which is searched in `PATH`.
  ///
  /// - Parameters:
  ///   - arguments: the command line.
  ///   - environment: variables that add to or replace the inherited ones.
  ///   - input: the child's standard input.
  /// - Throws: `HarnessError` if it cannot be started.
  init(
    _ arguments: [String], environment: [String: String] = [:], input: Input = .none
  ) throws {
    commandLine = arguments.joined(separator: " ")
    outputDescriptor = try Self.unnamedFile()
    errorDescriptor = try Self.unnamedFile()

    var childInput: CInt = -1
    var inputDescriptor: CInt?
    var terminalPath: String?
    switch input {
    case .none:
      childInput = open("/dev/null", O_RDONLY | O_CLOEXEC)
    case .file(let path):
      childInput = open(path, O_RDONLY | O_CLOEXEC)
    case .pipe:
      var ends: [CInt] = [-1, -1]
      // Not pipe(2): a socket can be close-on-exec from its creation, and the reader sees the end
      // only when no other process holds the writing end.
      let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
      guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
        throw HarnessError.systemCall("socketpair")
      }
      childInput = ends[0]
      inputDescriptor = ends[1]
    case .terminal(let path):
      terminalPath = path
    }
    guard childInput >= 0 || terminalPath != nil else {
      throw HarnessError.systemCall("open of standard input")
    }
    defer { if childInput >= 0 { close(childInput) } }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let terminalPath {
      // The first terminal that the leader of a new session opens controls that session.
      posix_spawn_file_actions_addopen(&actions, 0, terminalPath, O_RDWR, 0)
      posix_spawn_file_actions_adddup2(&actions, 0, 1)
      posix_spawn_file_actions_adddup2(&actions, 0, 2)
    } else {
      posix_spawn_file_actions_adddup2(&actions, childInput, 0)
      posix_spawn_file_actions_adddup2(&actions, outputDescriptor, 1)
      posix_spawn_file_actions_adddup2(&actions, errorDescriptor, 2)
    }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setpgroup(&attributes, 0)
    // Either way the child leads its own process group.
    let group = terminalPath == nil ? CInt(POSIX_SPAWN_SETPGROUP) : Self.spawnInNewSession
    posix_spawnattr_setflags(
      &attributes, Int16(group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let argv = CStringArray(arguments)
    let envp = CStringArray(variables.map { "\($0.key)=\($0.value)" })
    var pid: pid_t = 0
    let code = posix_spawnp(&pid, arguments[0], &actions, &attributes, argv.pointers, envp.pointers)
    guard code == 0 else { throw HarnessError.systemCall("start of \(arguments[0])", code) }
    processID = pid
    state = Mutex(State(inputDescriptor: inputDescriptor))
  }

  deinit {
    kill()
    closeInput()
    close(outputDescriptor)
    close(errorDescriptor)
  }

  /// How the child ended, or nil while it runs; reading the property reaps it.
  var ending: Ending? {
    state.withLock { state in
      if state.ending == nil {
        var status: CInt = 0
        if waitpid(processID, &status, WNOHANG) == processID {
          state.ending =
            status & 0x7f == 0 ? .exited((status >> 8) & 0xff) : .signalled(status & 0x7f)
        }
      }
      return state.ending
    }
  }

  var isRunning: Bool { ending == nil }

  /// The child's standard output so far.
  var standardOutput: String { Self.text(of: outputDescriptor) }

  /// The child's standard error so far.
  var standardError: String { Self.text(of: errorDescriptor) }

  /// Waits for the child's end.
  ///
  /// - Returns: nil if it still runs when `limit` has passed.
  func wait(within limit: Duration) -> Ending? {
    _ = Deadline(after: limit).wait(every: .milliseconds(2)) { ending != nil }
    return ending
  }

  /// Sends a signal only to the child.
  func signal(_ number: CInt) {
    state.withLock { state in
      if state.ending == nil { _ = Glibc.kill(processID, number) }
    }
  }

  /// Kills the child and its process group, and reaps the child if it ends soon.
  ///
  /// A reader that the kernel keeps in an uninterruptible wait ends later, with its mount.
  func kill() {
    guard isRunning else { return }
    _ = Glibc.kill(-processID, SIGKILL)
    _ = wait(within: .seconds(2))
  }

  /// Writes a line to a child that was started with `.pipe`.
  func write(line: String) throws {
    let descriptor = state.withLock { $0.inputDescriptor }
    guard let descriptor else { throw HarnessError("\(commandLine) has no input pipe") }
    let bytes = Array((line + "\n").utf8)
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
      throw HarnessError.systemCall("write to \(commandLine)")
    }
  }

  /// Closes the input pipe: the child reads end of file.
  func closeInput() {
    let descriptor = state.withLock { state in
      defer { state.inputDescriptor = nil }
      return state.inputDescriptor
    }
    if let descriptor { close(descriptor) }
  }

  /// glibc's `POSIX_SPAWN_SETSID`, which its header hides from Swift.
  private static let spawnInNewSession: CInt = 0x80

  /// A temporary file that is deleted when its last descriptor is closed.
  private static func unnamedFile() throws -> CInt {
    let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
    var template = Array("\(base)/httpfs-output-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { throw HarnessError.systemCall("mkstemp in \(base)") }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    unlink(template)
    return descriptor
  }

  private static func text(of descriptor: CInt) -> String {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_size > 0 else { return "" }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    // Use an explicit position: the child's writes move the descriptor's shared offset.
    let count = pread(descriptor, &bytes, bytes.count, 0)
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
  }
}

/// A NULL-terminated array of C strings that lives as long as the object.
private final class CStringArray {
  private(set) var pointers: [UnsafeMutablePointer<CChar>?]

  init(_ strings: [String]) {
    pointers = strings.map { strdup($0) } + [nil]
  }

  deinit {
    for pointer in pointers { free(pointer) }
  }
}
