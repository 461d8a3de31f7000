import CLinux
import Dispatch
import Glibc
import MountStatus
import Synchronization

/// Regularly reads the status of a mount, on a thread of its own.
final class StatusPoller: Sendable {
  enum Answer: Sendable {
    case report(StatusReport)
    /// Why there is no report, in one line.
    case failed(String)
  }

  /// The interval between two requests.
  private static let period = Duration.seconds(1)

  /// The pause after an answer, as a multiple of the time to decode it.
  ///
  /// A mount with very many files is read less often, so that watching takes at most a tenth of a
  /// core.
  private static let restFactor = 10.0
  private static let longestPeriod = Duration.seconds(10)

  private struct State {
    /// When the unanswered request was sent.
    var askedAt: ContinuousClock.Instant?
    var mustEnd = false
  }

  private let mountpoint: String
  private let state = Mutex(State())
  private let command = OwnCommand()
  private let wake: Mailbox<Void>
  private let queue = DispatchQueue(label: "httpfs.status")

  /// Prepares to read the mount at `mountpoint`, an absolute path.
  init(mountpoint: String) throws(CommandFailure) {
    self.mountpoint = mountpoint
    wake = try Mailbox()
  }

  /// Starts reading; `post` is called on the poller's thread for each answer.
  func start(_ post: @escaping @Sendable (Answer) -> Void) {
    queue.async { [self] in
      while true {
        let goesOn = state.withLock { state in
          state.askedAt = .now
          return !state.mustEnd
        }
        guard goesOn else { return }
        let (answer, cost) = ask()
        state.withLock { $0.askedAt = nil }
        post(answer)
        let pause = min(Self.longestPeriod, max(Self.period, cost * Self.restFactor))
        wake.wait(for: pause)
        _ = wake.take()
      }
    }
  }

  /// Sends the next request now.
  func hurry() { wake.post(()) }

  /// How long the last request has been unanswered; nil if it was answered.
  var silence: Duration? {
    state.withLock { state in state.askedAt.map { ContinuousClock.now - $0 } }
  }

  /// Ends the poller, without waiting for an unanswered request.
  func end() {
    state.withLock { $0.mustEnd = true }
    command.kill()
    wake.post(())
  }

  /// The CPU time of this thread: waiting on a busy machine does not count.
  private static var computingTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  /// - Returns: the answer, and how long it took to decode it.
  private func ask() -> (Answer, Duration) {
    do {
      let result = try command.run(["status", "--json", mountpoint])
      if let failure = result.failure { return (.failed(failure), .zero) }
      let start = Self.computingTime
      do {
        let report = try StatusReport(json: result.output)
        return (.report(report), Self.computingTime - start)
      } catch {
        return (.failed("\(error)"), .zero)
      }
    } catch {
      return (.failed("cannot ask the mount: \(error)"), .zero)
    }
  }
}
