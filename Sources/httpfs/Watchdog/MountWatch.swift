import Dispatch
import Glibc

/// The watchdog's loop: asks the mount every few seconds whether it answers.
struct MountWatch {
  /// Why there is nothing left to watch.
  enum Outcome {
    case ended
    case daemonDied
    case daemonHangs
  }

  let mount: WatchedMount
  let daemon: DaemonState
  /// How long a question may stay without an answer while the daemon is able to run.
  let patience: Duration

  private let lifeline = Lifeline()

  /// Between two questions: rare enough to cost nothing, and small beside the patience.
  private static let period = Duration.seconds(5)

  /// How often an unanswered question is looked at.
  private static let step = Duration.seconds(1)

  init(mount: WatchedMount, daemon: DaemonState, patience: Duration) {
    self.mount = mount
    self.daemon = daemon
    self.patience = patience
  }

  /// Returns when the mount has ended, or must be ended.
  func waitForEnd() -> Outcome {
    while true {
      if let end = lifeline.wait(for: Self.period) { return outcome(of: end) }
      // A mount that was detached lazily lives on for its open files, but has no name to ask by.
      guard mount.isListed else { continue }
      if let outcome = ask() { return outcome }
    }
  }

  /// Asks once.
  ///
  /// - Returns: nil where the mount has answered.
  private func ask() -> Outcome? {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    let (answer, question) = (ends[0], ends[1])
    defer { close(answer) }
    let mount = mount
    // On a thread of its own: while there is no answer, it cannot even be killed.
    DispatchQueue.global().async {
      mount.ask()
      close(question)
    }
    // Counted in steps, not by a clock: the time in which the machine, or this process, did not run
    // is not the daemon's fault.
    var unanswered = Duration.zero
    while !lifeline.wait(for: Self.step, or: answer) {
      unanswered = daemon.isStopped ? .zero : unanswered + Self.step
      if unanswered >= patience { return .daemonHangs }
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
