import CLinux
import Dispatch
import Glibc

/// The signals that the live view handles, as messages.
enum WatchSignals {
  /// The signals that end the view.
  static let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

  private static var all: sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in ending + [SIGTSTP, SIGCONT, SIGWINCH] { sigaddset(&signals, number) }
    return signals
  }

  /// Blocks the signals; call it before other threads start, because threads inherit the mask.
  static func block() {
    var signals = all
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    signal(SIGPIPE, SIG_IGN)
  }

  /// Calls `post` for each signal, on a thread of its own, until the process ends.
  static func deliver(_ post: @escaping @Sendable (Int32) -> Void) {
    DispatchQueue(label: "httpfs.signals").async {
      var signals = all
      while true {
        var number: Int32 = 0
        if sigwait(&signals, &number) == 0 { post(number) }
      }
    }
  }

  /// Stops the process as Ctrl-Z does.
  ///
  /// Returns when it is continued, or at once if no shell could continue it.
  static func stop() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTSTP)
    // Only for this thread, so that the thread that waits for signals does not receive it.
    raise(SIGTSTP)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
