import Glibc
import LinuxSystem
import MountStatus

/// The companion process of a mount, as seen by the daemon.
///
/// It is this program again, started as ``WatchdogCommand``. Its standard input is the lifeline: a
/// pipe whose other end only the daemon has. A byte means that the mount has ended properly; an end
/// of file without a byte means that the daemon has died.
struct Watchdog {
  private let processID: pid_t
  private let lifeline: Int32

  /// Starts the watchdog of a new mount.
  ///
  /// - Parameters:
  ///   - mount: the mount, as the kernel lists it.
  ///   - patience: how long the daemon may leave a request unanswered.
  ///   - logFile: where the watchdog logs its actions, in addition to the system's log.
  /// - Throws: the error of pipe(2) or posix_spawn(3).
  init(of mount: MountTable.Entry, patience: Duration, logFile: String?) throws(ErrorNumber) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw .last }
    // The lifeline must end with the daemon, not with the daemon's child processes.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
    for descriptor in [STDOUT_FILENO, STDERR_FILENO] {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0)
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    posix_spawnattr_setflags(&attributes, DaemonProcess.newSession)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
      close(ends[0])
    }

    var arguments = [
      "httpfs-watchdog", WatchdogCommand.name, "--daemon", String(getpid()),
      "--device", mount.device, "--patience", String(Int(patience.components.seconds)),
    ]
    if let logFile { arguments += ["--log-file", logFile] }
    arguments += ["--", mount.mountpoint]
    var child: pid_t = 0
    let code = withCStrings(arguments) {
      posix_spawn(&child, "/proc/self/exe", &actions, &attributes, $0, environ)
    }
    guard code == 0 else {
      close(ends[1])
      throw ErrorNumber(rawValue: code)
    }
    processID = child
    lifeline = ends[1]
  }

  /// Reports that the mount has ended, and waits for the watchdog's end, at most for a second.
  func dismiss() {
    var farewell: UInt8 = 0
    _ = write(lifeline, &farewell, 1)
    close(lifeline)
    for _ in 0..<100 {
      guard waitpid(processID, nil, WNOHANG) == 0 else { return }
      usleep(10_000)
    }
  }
}
