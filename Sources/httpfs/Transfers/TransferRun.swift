import ArgumentParser
import Glibc
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Synchronization
import TransferDisplay

/// Runs the transfers of a command to their end, shows them, and obeys signals.
///
/// The first SIGINT or SIGTERM cancels what runs, so that it can be gone on with; a second one, or
/// ``cancelPatience``, ends the process at once.
final class TransferRun: Sendable {
  /// A file that is to become a transfer, and what is shown of it.
  struct Job: Sendable {
    let name: String
    /// The URL as it may be shown.
    let url: String
    /// What the queue counts transfers by.
    let host: String

    init(name: String, url: RemoteURL) {
      self.name = name
      self.url = url.redacted
      host = url.authority
    }
  }

  /// How the run ended.
  struct Outcome {
    var failedCount = 0
    var cancelledCount = 0
    /// How many of those that failed did so because a file is there that they may not replace.
    var existingCount = 0
    /// The signal that ended it.
    var signal: Int32?
    /// Whether something was still at work then.
    var isAbandoned = false

    /// Ends the process where a signal has ended the run.
    ///
    /// - Throws: its exit code, where nothing is at work any more.
    func endIfSignalled() throws(ExitCode) {
      guard let signal else { return }
      // Threads that go on do not bear exit(3).
      if isAbandoned { _exit(128 + signal) }
      throw ExitCode(128 + signal)
    }

    /// Files that are there already are the only failures (`EX_CANTCREAT`).
    private static let existing = ExitCode(73)

    /// The code of a run that no signal has ended; nil for success.
    var exitCode: ExitCode? {
      if failedCount > 0, failedCount == existingCount { return Self.existing }
      return failedCount + cancelledCount > 0 ? .failure : nil
    }
  }

  private let queue: TransferQueue
  private let isUpload: Bool
  private let notices = Mutex<[String]>([])
  /// How many transfers may still have something to say.
  private let listenerCount = Atomic<Int>(0)

  /// How long what a signal has cancelled may take to end, whatever the network thread or a disk is busy
  /// with: partial files stay as after `kill -9`.
  static let cancelPatience = Duration.seconds(1)

  /// Wakes the main thread, which waits for signals, when all transfers that there are have ended.
  private static let wakeSignal = SIGUSR1
  /// Those that end the run: not one that whoever started the process wants to be ignored (nohup, a
  /// script's background job).
  static let endSignals = [SIGINT, SIGTERM, SIGHUP].filter { number in
    var present = sigaction()
    sigaction(number, nil, &present)
    let ignoring = 1  // SIG_IGN, which Swift does not compare
    return unsafeBitCast(present.__sigaction_handler.sa_handler, to: Int.self) != ignoring
  }

  init(queue: TransferQueue, isUpload: Bool) {
    self.queue = queue
    self.isUpload = isUpload
  }

  /// Blocks the signals that ``run(_:output:)`` waits for; call it before any thread is there.
  static func blockSignals() {
    var blocked = waitedSignals
    pthread_sigmask(SIG_BLOCK, &blocked, nil)
    signal(SIGPIPE, SIG_IGN)
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
  ///   - jobs: what is to be transferred, in the order of the display.
  ///   - output: where it is shown.
  ///   - onChange: called from time to time and at the end, for those who keep a record.
  ///   - makeTransfer: makes the transfer of a job, by its number, in the queue; called when it is soon
  ///     to run.
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
        deadline = .now + Self.cancelPatience
        queue.cancelAll()
      }
      if board.look() { queue.removeEnded() }
      if let deadline, .now >= deadline {
        board.abandon()
        outcome.isAbandoned = true
        break
      }
      if outcome.signal != nil || queue.configuration.stopsAtFailure && board.failedCount > 0 {
        board.giveUp()
      }
      begin()
      output.show(snapshot(of: board, since: start), notices: takeNotices())
      onChange(board, false)
    }
    let last = snapshot(of: board, since: start)
    outcome.failedCount = last.totals.failedCount
    outcome.cancelledCount = last.totals.cancelledCount
    outcome.existingCount = board.existingCount
    output.finish(last, notices: takeNotices())
    onChange(board, true)
    return outcome
  }

  /// Collects what a snapshot does not tell.
  private func listen(to transfer: Transfer, named name: String) {
    let events = transfer.events
    let request = transfer.request
    let main = getpid()
    listenerCount.add(1, ordering: .relaxed)
    Task { [self] in
      for await event in events {
        switch event.kind {
        case .restarted(let reason): notice("\(name): starting over: \(reason)")
        case .mirrorExcluded(let url, let reason):
          notice("\(name): a mirror is not used any more: \(url.redacted): \(reason)")
        case .finished(let result):
          if request.method == .get, !request.decodesContent, !result.isUnchanged,
            result.response.headerFields.isDoubtful(forPath: request.url.path)
          {
            notice("\(name): warning: the server sent something else than the name promises")
          }
        default: break
        }
      }
      // What the last events have to say belongs before the last lines.
      if listenerCount.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
        kill(main, Self.wakeSignal)
      }
    }
  }

  private func notice(_ text: String) { notices.withLock { $0.append(text) } }

  private func takeNotices() -> [String] {
    notices.withLock { notices in
      defer { notices = [] }
      return notices
    }
  }

  private func snapshot(
    of board: TransferBoard, since start: ContinuousClock.Instant
  ) -> DisplaySnapshot {
    DisplaySnapshot(
      items: board.items, elapsed: (ContinuousClock.now - start) / .seconds(1), isUpload: isUpload)
  }
}
