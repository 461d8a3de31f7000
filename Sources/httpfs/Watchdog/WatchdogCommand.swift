import ArgumentParser
import Glibc

/// What `httpfs mount` starts beside itself: it frees the readers where the daemon no longer can, and says
/// what has happened.
///
/// It never removes the mount: programs would then see the empty directory below without an error,
/// and a mirroring tool would delete its copy. The mount point gives ENOTCONN until somebody
/// unmounts it or mounts there again.
///
/// Not for users, hence hidden. See docs/SEMANTICS.md, "The end", for what it promises.
struct WatchdogCommand: ParsableCommand {
  static let name = "watchdog"

  static let configuration = CommandConfiguration(
    commandName: name, abstract: "Watch a mount; 'httpfs mount' starts this command itself.",
    shouldDisplay: false)

  @Option(help: "The process that serves the mount.")
  var daemon: Int32

  @Option(help: "The mount's device, MAJOR:MINOR as in /proc/self/mountinfo.")
  var device: String

  @Option(help: "How many seconds the daemon may leave a request unanswered.")
  var patience: Int

  @Option(help: "A file to append the log to.")
  var logFile: String?

  @Argument(help: "The mount point.")
  var mountpoint: String

  func run() throws {
    // Whatever the daemon was started with, a directory or a pipe of the user's among it, must not
    // be held by this process.
    closefrom(STDERR_FILENO + 1)
    chdir("/")
    let mount = WatchedMount(mountpoint: mountpoint, device: device)
    let log = WatchdogLog(file: logFile)
    let watch = MountWatch(
      mount: mount, daemon: DaemonState(processID: daemon), patience: .seconds(patience))
    switch watch.waitForEnd() {
    case .ended:
      return
    case .daemonDied:
      guard mount.isDead else { return }
      log.write(
        "the daemon of \(mountpoint) has died; the mount point gives ENOTCONN until 'httpfs mount'"
          + " takes it over or 'httpfs unmount' clears it")
    case .daemonHangs:
      log.write(
        "the daemon of \(mountpoint) (process \(daemon)) has not answered for \(patience) s;"
          + " the mount is aborted, and gives ENOTCONN until it is mounted again or unmounted")
      end(mount)
    }
  }

  /// Frees the readers of a mount whose daemon hangs, then ends the daemon.
  private func end(_ mount: WatchedMount) {
    mount.abort()
    // An aborted connection ends a daemon that is well but for its requests. The others keep the
    // cache locked and, where the connection could not be aborted, the readers: both end with them.
    let lifeline = Lifeline()
    if lifeline.wait(for: .seconds(5)) == nil { kill(daemon, SIGKILL) }
  }
}
