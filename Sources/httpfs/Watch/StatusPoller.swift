import Dispatch
import Glibc
import MountStatus
import Synchronization

/// Asks a mount again and again how it is, on a thread of its own.
final class StatusPoller: Sendable {
  enum Answer: Sendable {
    case report(StatusReport)
    /// Why there is none, in one line.
    case failed(String)
  }

  /// How often the mount is asked.
  private static let period = Duration.seconds(1)

  /// How much longer than the reading of an answer the pause after it is: a mount of very many files
  /// is asked less often, so that a tenth of a core is enough to watch it.
  private static let restFactor = 10.0
  private static let longestPeriod = Duration.seconds(10)

  private struct State {
    /// When the question was asked that has no answer yet.
    var askedAt: ContinuousClock.Instant?
    var mustEnd = false
  }

  private let mountpoint: String
  private let state = Mutex(State())
  private let command = OwnCommand()
  private let wake: Mailbox<Void>
  private let queue = DispatchQueue(label: "httpfs.status")

  /// Will ask the mount at `mountpoint`, an absolute path.
  init(mountpoint: String) throws(CommandFailure) {
    self.mountpoint = mountpoint
    wake = try Mailbox()
  }

  /// Begins to ask; `post` is called on the poller's thread for each answer.
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

  /// Has the next question asked now.
  func hurry() { wake.post(()) }

  /// How long the last question has been without an answer; nil where it has one.
  var silence: Duration? {
    state.withLock { state in state.askedAt.map { ContinuousClock.now - $0 } }
  }

  /// Ends it, without waiting for a question that has no answer.
  func end() {
    state.withLock { $0.mustEnd = true }
    command.kill()
    wake.post(())
  }

  /// How long this thread has computed: waiting on a busy machine is no work.
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
