internal import Glibc

/// A program that this process starts as a child (`posix_spawn(3)`).
///
/// The child inherits all that is not set here: the working directory, the signal mask, and the
/// descriptors without the close-on-exec flag.
package struct ChildProgram {
  /// The location of the program.
  package enum Executable: Sendable {
    case path(String)
    /// The program is looked up in `PATH` (`posix_spawnp(3)`).
    case named(String)

    /// The program of this process, even if its file has another name by now.
    package static let own = Executable.path("/proc/self/exe")
  }

  /// The source of a standard descriptor of the child.
  package enum Standard: Sendable {
    case inherited
    /// `/dev/null`.
    case null
    case copy(of: CInt)
  }

  package enum Group: Sendable {
    case inherited
    /// A process group of its own, so that keys of the terminal do not signal it.
    case own
    /// A session of its own, without a terminal.
    case ownSession
  }

  package enum Signals: Sendable {
    case inherited
    /// No signal is blocked, and those in the list have their default actions.
    case unblocked(resetting: [CInt])
  }

  package enum OtherDescriptors: Sendable {
    /// Those without the close-on-exec flag.
    case inherited
    /// None: libraries open some descriptors without that flag.
    case closed
  }

  package let executable: Executable
  /// The words of the command line, from the program's name on.
  package let arguments: [String]
  /// Variables to add to, or to replace in, the environment of this process.
  package var variables: [(name: String, value: String)] = []
  package var input = Standard.inherited
  package var output = Standard.inherited
  package var errorOutput = Standard.inherited
  package var otherDescriptors = OtherDescriptors.inherited
  package var group = Group.inherited
  package var signals = Signals.inherited

  package init(_ executable: Executable, _ arguments: [String]) {
    self.executable = executable
    self.arguments = arguments
  }

  /// `POSIX_SPAWN_SETSID` of glibc's spawn.h, which Swift does not see (it is a GNU extension).
  private static let newSession: CInt = 0x80

  /// Starts the program.
  ///
  /// - Returns: the child.
  /// - Throws: the error of posix_spawn(3), such as `ENOENT`.
  package func start() throws(ErrorNumber) -> ChildProcess {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    add(to: &actions)
    set(&attributes)
    var child: pid_t = 0
    let words = arguments.map { Array($0.utf8CString) }
    let code = Self.withPointers(words) { words in
      Self.withPointers(environment()) { environment in
        switch executable {
        case .path(let path):
          posix_spawn(&child, path, &actions, &attributes, words, environment)
        case .named(let name):
          posix_spawnp(&child, name, &actions, &attributes, words, environment)
        }
      }
    }
    guard code == 0 else { throw ErrorNumber(rawValue: code) }
    return ChildProcess(child)
  }

  private func add(to actions: inout posix_spawn_file_actions_t) {
    let standards = [
      (STDIN_FILENO, input), (STDOUT_FILENO, output), (STDERR_FILENO, errorOutput),
    ]
    for (descriptor, standard) in standards {
      switch standard {
      case .inherited: break
      case .null:
        let flags = descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY
        posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", flags, 0)
      case .copy(let source): posix_spawn_file_actions_adddup2(&actions, source, descriptor)
      }
    }
    guard case .closed = otherDescriptors else { return }
    // A descriptor that is closed meanwhile does no harm.
    let others = (try? ProcessCalls.openDescriptors()) ?? []
    for descriptor in others where descriptor > STDERR_FILENO {
      posix_spawn_file_actions_addclose(&actions, descriptor)
    }
  }

  private func set(_ attributes: inout posix_spawnattr_t) {
    var flags: CInt = 0
    switch group {
    case .inherited: break
    case .own:
      flags |= POSIX_SPAWN_SETPGROUP
      posix_spawnattr_setpgroup(&attributes, 0)
    case .ownSession: flags |= Self.newSession
    }
    if case .unblocked(let numbers) = signals {
      flags |= POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
      var signals = sigset_t()
      sigemptyset(&signals)
      posix_spawnattr_setsigmask(&attributes, &signals)
      for number in numbers { sigaddset(&signals, number) }
      posix_spawnattr_setsigdefault(&attributes, &signals)
    }
    posix_spawnattr_setflags(&attributes, Int16(flags))
  }

  /// The variables as bytes, because those of this process need not be UTF-8.
  private func environment() -> [[CChar]] {
    let replaced = variables.map { Array("\($0.name)=".utf8CString.dropLast()) }
    var environment: [[CChar]] = []
    var next = environ
    while let variable = next.pointee {
      let bytes = Array(UnsafeBufferPointer(start: variable, count: strlen(variable) + 1))
      if !replaced.contains(where: { bytes.starts(with: $0) }) { environment.append(bytes) }
      next += 1
    }
    return environment + variables.map { Array("\($0.name)=\($0.value)".utf8CString) }
  }

  /// Calls `body` with a NULL-terminated array of C strings, valid during the call.
  private static func withPointers<Result>(
    _ strings: [[CChar]], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
  ) -> Result {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
  }
}
