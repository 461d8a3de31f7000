internal import Dispatch
internal import Glibc

/// The signals of a mount: SIGINT and SIGTERM end it, SIGHUP reloads its list.
package final class ProcessSignals: Sendable {
  private static let handled = [SIGINT, SIGTERM, SIGHUP]

  private let queue = DispatchQueue(label: "httpfs.signals")

  /// Blocks the signals, so that they do not kill the process.
  ///
  /// Call it on the main thread before other threads start, because threads inherit the mask.
  package init() {
    var blocked = sigset_t()
    sigemptyset(&blocked)
    for number in Self.handled { sigaddset(&blocked, number) }
    pthread_sigmask(SIG_BLOCK, &blocked, nil)
    // The handler only interrupts the session's loop.
    var interrupting = sigaction()
    interrupting.__sigaction_handler.sa_handler = { _ in }
    sigaction(SIGUSR1, &interrupting, nil)
    signal(SIGPIPE, SIG_IGN)
  }

  /// Calls `onEnd`, with the signal's number, or `onReload` on a separate thread for each signal.
  ///
  /// - Returns: an object that delivers signals while it exists.
  package func deliver(
    onEnd: @escaping @Sendable (Int32) -> Void, onReload: @escaping @Sendable () -> Void
  ) -> any Sendable {
    let sources = Self.handled.map { number in
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { number == SIGHUP ? onReload() : onEnd(number) }
      source.resume()
      return Source(source)
    }
    return sources
  }

  /// `@unchecked Sendable`: a dispatch source may be used from any thread, and this only retains
  /// it.
  private final class Source: @unchecked Sendable {
    private let source: any DispatchSourceSignal
    init(_ source: any DispatchSourceSignal) { self.source = source }
  }
}
