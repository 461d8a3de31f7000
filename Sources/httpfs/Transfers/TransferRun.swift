import ArgumentParser
import CLinux
import Glibc
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Synchronization
import TransferDisplay

/// Runs the transfers of a command to their end, shows them, and handles signals.
///
/// The first SIGINT or SIGTERM cancels the running transfers, so that they can be resumed. A second
/// one, or ``cancelTimeout``, ends the process at once.
final class TransferRun: Sendable {
  /// A file that will become a transfer, and its display.
  struct Job: Sendable {
    let name: String
    /// The URL in a form that may be shown.
    let url: String
    /// The key by which the queue counts transfers.
    let host: String
    /// Why it fails without a transfer; nil if it does not.
    let failure: JobFailure?
    /// Where the name comes from.
    let nameSource: NameSource

    init(
      name: String, url: RemoteURL, failure: JobFailure? = nil, nameSource: NameSource = .user
    ) {
      self.name = name
      self.failure = failure
      self.nameSource = nameSource
      self.url = url.redacted
      host = url.authority
    }
  }

  /// How the run ended.
  struct Outcome {
    var failedCount = 0
    var cancelledCount = 0
    /// Why transfers have failed.
    var exits: Set<TransferExit> = []
    /// The signal that ended it.
    var signal: Int32?
    /// Whether the time limit has ended it.
    var isOverTime = false
    /// Whether something was still running then.
    var isAbandoned = false

    /// Ends the process if a signal has ended the run, or if something is still running.
    ///
    /// - Throws: the exit code of the signal, if nothing is running any more.
    func endIfInterrupted() throws(ExitCode) {
      let signalled = signal.map { ExitCode(128 + $0) }
      // Threads that still run do not tolerate exit(3).
      if isAbandoned { _exit((signalled ?? exitCode ?? .failure).rawValue) }
      if let signalled { throw signalled }
    }

    /// The exit code of a run that no signal has ended; nil for success.
    var exitCode: ExitCode? {
      if let exit = TransferExit(exits) { return exit.code }
      return failedCount + cancelledCount > 0 ? .failure : nil
    }
  }

  private let queue: TransferQueue
  private let isUpload: Bool
  /// How long the whole run may take; nil for no limit.
  private let timeLimit: Duration?
  private let notices = Mutex<[TransferOutput.Notice]>([])
  /// How many transfers may still send notices.
  private let listenerCount = Atomic<Int>(0)

  /// How long cancelled transfers may take to end, whatever the network thread or a disk is doing.
  ///
  /// Partial files then stay as after `kill -9`.
  static let cancelTimeout = Duration.seconds(1)

  /// Wakes the main thread, which waits for signals, when all current transfers have ended.
  private static let wakeSignal = SIGUSR1
  /// The signals that end the run, without those that this process was started to ignore (nohup, a
  /// script's background job).
  static let endSignals = [SIGINT, SIGTERM, SIGHUP].filter { number in
    var present = sigaction()
    sigaction(number, nil, &present)
    let ignoring = 1  // SIG_IGN, which Swift does not compare
    return unsafeBitCast(present.__sigaction_handler.sa_handler, to: Int.self) != ignoring
  }

  init(queue: TransferQueue, isUpload: Bool, timeLimit: Duration?) {
    self.queue = queue
    self.isUpload = isUpload
    self.timeLimit = timeLimit
  }

  /// Blocks the signals that ``run(_:output:)`` waits for; call it before other threads start.
  static func blockSignals() {
    var blocked = waitedSignals
    pthread_sigmask(SIG_BLOCK, &blocked, nil)
    signal(SIGPIPE, SIG_IGN)
  }

  /// Ends the command if a signal has come that ends it, while it prepares a run.
  ///
  /// - Parameter step: the number of the step of long work; not each step looks for a signal.
  /// - Throws: the exit code of the signal.
  static func endIfSignalled(at step: Int = 0) throws(ExitCode) {
    guard step & 0xFFF == 0, let number = pendingSignal else { return }
    throw ExitCode(128 + number)
  }

  /// A signal that ends the command and that no run has taken yet; nil if there is none.
  static var pendingSignal: Int32? {
    var pending = sigset_t()
    sigpending(&pending)
    return endSignals.first { sigismember(&pending, $0) == 1 }
  }

  private static var waitedSignals: sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in endSignals + [wakeSignal, SIGWINCH] { sigaddset(&signals, number) }
    return signals
  }

  /// Starts the queue; returns when all jobs have ended.
  ///
  /// - Parameters:
  ///   - jobs: the files to transfer, in the order of the display.
  ///   - output: shows the run.
  ///   - onChange: called regularly and at the end, to keep a record.
  ///   - makeTransfer: makes the transfer of a job, by its number, in the queue; called shortly
  ///     before it runs.
  /// - Returns: how it ended.
  func run(
    _ jobs: [Job], output: inout TransferOutput,
    onChange: (_ board: TransferBoard, _ isEnd: Bool) -> Void = { _, _ in },
    transfer makeTransfer: (_ index: Int) -> Transfer
  ) -> Outcome {
    let start = ContinuousClock.now
    var board = TransferBoard(
      jobs, isUpload: isUpload, maximumPerHost: queue.configuration.maximumPerHost)
    var outcome = Outcome()
    func begin() {
      if queue.configuration.stopsAtFailure, board.failedCount > 0 { board.giveUp() }
      for index in board.begin() {
        let transfer = makeTransfer(index)
        listen(to: transfer, named: jobs[index].name)
        board.add(transfer, of: index)
      }
    }
    begin()
    queue.start()
    var signals = Self.waitedSignals
    var deadline: ContinuousClock.Instant?
    while !board.isFinished || listenerCount.load(ordering: .acquiring) > 0 {
      var interval = timespec(tv_sec: 0, tv_nsec: 100_000_000)
      let number = sigtimedwait(&signals, nil, &interval)
      if Self.endSignals.contains(number) {
        if outcome.signal != nil {
          output.abandon()
          _exit(128 + number)
        }
        outcome.signal = number
        deadline = .now + Self.cancelTimeout
        queue.cancelAll()
      }
      if let timeLimit, outcome.signal == nil, deadline == nil, .now - start >= timeLimit {
        outcome.isOverTime = true
        outcome.exits.insert(.timeout)
        notice(CommandFailure.overTime.description, isError: true)
        deadline = .now + Self.cancelTimeout
        queue.cancelAll()
      }
      if board.look() { queue.removeEnded() }
      if let deadline, .now >= deadline {
        board.abandon()
        outcome.isAbandoned = true
        break
      }
      if deadline != nil { board.giveUp() }
      // Before others begin: what has ended may be a reason not to.
      onChange(board, false)
      begin()
      output.show(board.takeSnapshot(elapsed: elapsed(since: start)), notices: takeNotices())
    }
    let last = board.takeSnapshot(elapsed: elapsed(since: start))
    outcome.failedCount = last.totals.failedCount
    outcome.cancelledCount = last.totals.cancelledCount
    outcome.exits.formUnion(board.exits)
    output.finish(last, notices: takeNotices())
    onChange(board, true)
    return outcome
  }

  /// Collects notices, which a snapshot does not contain.
  private func listen(to transfer: Transfer, named name: String) {
    let events = transfer.events
    let request = transfer.request
    let main = getpid()
    listenerCount.add(1, ordering: .relaxed)
    Task { [self] in
      var deadMirrors: Set<RemoteURL> = []
      for await event in events {
        switch event.kind {
        case .retrying(let error, _, _)
        where !request.mirrors.isEmpty
          && [.unresolvedHost, .connectionRefused].contains(error.code):
          guard deadMirrors.insert(error.url).inserted else { break }
          notice("\(name): a mirror does not answer: \(error.url.redacted): \(error.reason)")
        case .restarted(let reason): notice("\(name): starting over: \(reason)")
        case .mirrorExcluded(let url, let reason):
          notice("\(name): a mirror is not used any more: \(url.redacted): \(reason)")
        case .finished(let result):
          if request.method == .get, request.range == nil, !request.decodesContent,
            !result.isUnchanged,
            result.response.headerFields.isDoubtful(for: request.url)
          {
            notice("\(name): warning: the server sent something else than the name promises")
          }
        default: break
        }
      }
      // The notices of the last events belong before the last lines.
      if listenerCount.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
        kill(main, Self.wakeSignal)
      }
    }
  }

  private func notice(_ text: String, isError: Bool = false) {
    notices.withLock { $0.append(TransferOutput.Notice(text: text, isError: isError)) }
  }

  private func takeNotices() -> [TransferOutput.Notice] {
    notices.withLock { notices in
      defer { notices = [] }
      return notices
    }
  }

  private func elapsed(since start: ContinuousClock.Instant) -> Double {
    (.now - start) / .seconds(1)
  }
}
