internal import Glibc
internal import Synchronization

/// A child process, until it is waited for.
package final class ChildProcess: Sendable {
  /// How a process has ended.
  package enum Ending: Equatable, Sendable {
    case exited(CInt)
    case signalled(CInt)

    /// The exit code; 128 + the signal if a signal ended the process.
    package var exitCode: CInt {
      switch self {
      case .exited(let code): code
      case .signalled(let number): 128 + number
      }
    }

    /// `WIFEXITED`, `WEXITSTATUS` and `WTERMSIG` of wait(2), which are macros.
    fileprivate init(status: CInt) {
      let signal = status & 0x7F
      self = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
    }
  }

  package let processID: CInt

  /// How the process has ended, once it was waited for.
  ///
  /// Waiting frees the process's number. It happens under this lock, so that no signal reaches
  /// another process that got the number.
  private let ending = Mutex<Ending?>(nil)

  init(_ processID: CInt) { self.processID = processID }

  /// How the process has ended; nil if it has not (`waitpid(2)`).
  package func endingNow() throws(ErrorNumber) -> Ending? {
    try ending.withLock { (ending) throws(ErrorNumber) -> Ending? in
      var status: CInt = 0
      if ending == nil,
        try checked({ waitpid(processID, &status, WNOHANG) }) == processID
      {
        ending = Ending(status: status)
      }
      return ending
    }
  }

  /// Waits until the process ends (`waitid(2)`).
  package func waitForEnd() throws(ErrorNumber) -> Ending {
    while true {
      if let ending = try endingNow() { return ending }
      var information = siginfo_t()
      _ = try checked {
        waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT)
      }
    }
  }

  /// Waits until the process ends, but at most for a time.
  package func waitForEnd(atMost limit: Duration) {
    let interval = Duration.milliseconds(10)
    for _ in 0..<Int(limit / interval) {
      do throws(ErrorNumber) {
        if try endingNow() != nil { return }
      } catch {
        // It cannot be waited for.
        return
      }
      usleep(10_000)
    }
  }

  /// Kills the process, unless it was waited for.
  package func kill() { signal(processID) }

  /// Kills the process group of the process, unless that was waited for.
  package func killGroup() { signal(-processID) }

  private func signal(_ target: CInt) {
    ending.withLock { ending in
      if ending == nil { _ = Glibc.kill(target, SIGKILL) }
    }
  }
}
