import Dispatch
import Glibc

/// The watchdog's loop: checks every few seconds whether the mount answers.
struct MountWatch {
  /// Why the watch ends.
  enum Outcome {
    case ended
    case daemonDied
    case daemonHangs
  }

  let mount: WatchedMount
  let daemon: DaemonState
  /// How long a request may stay unanswered while the daemon is able to run.
  let timeout: Duration

  private let lifeline = Lifeline()

  /// The interval between two requests: long enough to cost nothing, and short beside the patience.
  private static let period = Duration.seconds(5)

  /// The interval between two checks of an unanswered request.
  private static let step = Duration.seconds(1)

  init(mount: WatchedMount, daemon: DaemonState, timeout: Duration) {
    self.mount = mount
    self.daemon = daemon
    self.timeout = timeout
  }

  /// Returns when the mount has ended, or must be ended.
  func waitForEnd() -> Outcome {
    while true {
      if let end = lifeline.wait(for: Self.period) { return outcome(of: end) }
      // A lazily detached mount continues for its open files, but has no name to send a request to.
      guard mount.isListed else { continue }
      if let outcome = ask() { return outcome }
    }
  }

  /// Sends one request.
  ///
  /// - Returns: nil if the mount has answered.
  private func ask() -> Outcome? {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    let (answer, question) = (ends[0], ends[1])
    defer { close(answer) }
    let mount = mount
    // Use a separate thread: while there is no answer, it cannot even be killed.
    DispatchQueue.global().async {
      mount.ask()
      close(question)
    }
    // Count steps instead of clock time: the daemon is not at fault while the machine, or this
    // process, did not run.
    var unanswered = Duration.zero
    while !lifeline.wait(for: Self.step, or: answer) {
      unanswered = daemon.isStopped ? .zero : unanswered + Self.step
      if unanswered >= timeout { return .daemonHangs }
    }
    return lifeline.wait(for: .zero).map(outcome(of:))
  }

  private func outcome(of end: Lifeline.End) -> Outcome {
    switch end {
    case .dismissed: .ended
    case .died: .daemonDied
    }
  }
}
