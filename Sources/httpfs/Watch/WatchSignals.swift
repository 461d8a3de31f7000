import Dispatch
import Glibc

/// The signals that the live view obeys, as messages.
enum WatchSignals {
  /// Those that end the view.
  static let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

  private static var all: sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in ending + [SIGTSTP, SIGCONT, SIGWINCH] { sigaddset(&signals, number) }
    return signals
  }

  /// Blocks the signals; call it before any other thread is there, because threads inherit that.
  static func block() {
    var signals = all
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    signal(SIGPIPE, SIG_IGN)
  }

  /// Calls `post` for each signal that comes, on a thread of its own, until the process ends.
  static func deliver(_ post: @escaping @Sendable (Int32) -> Void) {
    DispatchQueue(label: "httpfs.signals").async {
      var signals = all
      while true {
        var number: Int32 = 0
        if sigwait(&signals, &number) == 0 { post(number) }
      }
    }
  }

  /// Stops the process as Ctrl-Z does; returns when it is continued, or at once where nobody could
  /// continue it.
  static func stop() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTSTP)
    // At this thread alone, so that the one that waits for signals does not take it.
    raise(SIGTSTP)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
