import Glibc
import LinuxSystem

/// The companion process of a mount, as seen by the daemon.
///
/// It is this program again, started as ``WatchdogCommand``. Its standard input is the lifeline: a
/// pipe whose other end only the daemon has. A byte means that the mount has ended properly; an end
/// of file without a byte means that the daemon has died.
struct Watchdog {
  private let process: ChildProcess
  private let lifeline: Int32

  /// Starts the watchdog of a new mount.
  ///
  /// - Parameters:
  ///   - mount: the mount, as the kernel lists it.
  ///   - timeout: how long the daemon may leave a request unanswered.
  ///   - logFile: where the watchdog logs its actions, in addition to the system's log.
  /// - Throws: the error of pipe(2) or posix_spawn(3).
  init(of mount: MountTable.Entry, timeout: Duration, logFile: String?) throws(ErrorNumber) {
    var arguments = [
      "httpfs-watchdog", WatchdogCommand.name, "--daemon", String(getpid()),
      "--device", mount.device, "--timeout", String(Int(timeout.components.seconds)),
    ]
    if let logFile { arguments += ["--log-file", logFile] }
    arguments += ["--", mount.mountpoint]
    // The lifeline must end with the daemon, not with the daemon's child processes.
    var pipe = try ChildPipe()
    var program = ChildProgram(.own, arguments)
    program.input = .copy(of: pipe.readEnd)
    program.output = .null
    program.errorOutput = .null
    program.group = .ownSession
    process = try program.start()
    lifeline = pipe.takeWriteEnd()
  }

  /// Reports that the mount has ended, and waits for the watchdog's end, at most for a second.
  func dismiss() {
    var farewell: UInt8 = 0
    _ = write(lifeline, &farewell, 1)
    close(lifeline)
    process.waitForEnd(atMost: .seconds(1))
  }
}
