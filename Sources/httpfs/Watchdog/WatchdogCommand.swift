import ArgumentParser
import Glibc

/// The companion process of `httpfs mount`: it releases waiting readers if the daemon no longer
/// can, and logs what happened.
///
/// It never removes the mount: programs would then see the empty directory below without an error,
/// and a mirroring tool would delete its copy. The mount point returns ENOTCONN until it is
/// unmounted or mounted again.
///
/// Not for users, and therefore hidden. docs/SEMANTICS.md, "The end", describes its promises.
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
  var timeout: Int

  @Option(help: "A file to append the log to.")
  var logFile: String?

  @Argument(help: "The mount point.")
  var mountpoint: String

  func run() throws {
    // This process must not hold any file that the daemon was started with, such as a directory or
    // a pipe of the user.
    closefrom(STDERR_FILENO + 1)
    chdir("/")
    let mount = WatchedMount(mountpoint: mountpoint, device: device)
    let log = WatchdogLog(file: logFile)
    let watch = MountWatch(
      mount: mount, daemon: DaemonState(processID: daemon), timeout: .seconds(timeout))
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
        "the daemon of \(mountpoint) (process \(daemon)) has not answered for \(timeout) s;"
          + " the mount is aborted, and gives ENOTCONN until it is mounted again or unmounted")
      end(mount)
    }
  }

  /// Releases the readers of a mount whose daemon hangs, then ends the daemon.
  private func end(_ mount: WatchedMount) {
    mount.abort()
    // Aborting the connection ends a daemon that only fails to answer requests. Other daemons keep
    // the cache locked and, if the connection could not be aborted, the readers waiting. Killing
    // them ends both.
    let lifeline = Lifeline()
    if lifeline.wait(for: .seconds(5)) == nil { kill(daemon, SIGKILL) }
  }
}
