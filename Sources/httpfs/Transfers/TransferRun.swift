import ArgumentParser
import Glibc
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Synchronization
import TransferDisplay

/// Runs the transfers of a command to their end, shows them, and obeys signals.
///
/// The first SIGINT or SIGTERM cancels what runs, so that it can be gone on with; the second ends the
/// process at once.
final class TransferRun: Sendable {
  /// A transfer and what it is called on the screen.
  struct Job: Sendable {
    let name: String
    let transfer: Transfer
  }

  /// How the run ended.
  struct Outcome {
    var failedCount = 0
    var cancelledCount = 0
    /// The signal that ended it.
    var signal: Int32?
  }

  private let queue: TransferQueue
  private let isUpload: Bool
  private let notices = Mutex<[String]>([])
  /// Whether all transfers have ended and all that they had to say is in ``notices``.
  private let hasEnded = Atomic<Bool>(false)

  /// Wakes the main thread, which waits for signals, when everything has ended.
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
  ///   - jobs: the transfers of the queue, in the order of the display.
  ///   - output: where they are shown.
  ///   - onChange: called from time to time and at the end, for those who keep a record.
  /// - Returns: how it ended.
  func run(
    _ jobs: [Job], output: inout TransferOutput, onChange: (_ isEnd: Bool) -> Void = { _ in }
  ) -> Outcome {
    let start = ContinuousClock.now
    let listeners = jobs.map { listen(to: $0) }
    let main = getpid()
    Task { [self] in
      await queue.finished()
      // What the last events have to say belongs before the last lines.
      for listener in listeners { await listener.value }
      hasEnded.store(true, ordering: .releasing)
      kill(main, Self.wakeSignal)
    }
    queue.start()
    var outcome = Outcome()
    var signals = Self.waitedSignals
    while !hasEnded.load(ordering: .acquiring) {
      var interval = timespec(tv_sec: 0, tv_nsec: 100_000_000)
      let number = sigtimedwait(&signals, nil, &interval)
      if Self.endSignals.contains(number) {
        if outcome.signal != nil {
          output.abandon()
          _exit(128 + number)
        }
        outcome.signal = number
        queue.cancelAll()
      }
      output.show(snapshot(of: jobs, since: start), notices: takeNotices())
      onChange(false)
    }
    let last = snapshot(of: jobs, since: start)
    outcome.failedCount = last.totals.failedCount
    outcome.cancelledCount = last.totals.cancelledCount
    output.finish(last, notices: takeNotices())
    onChange(true)
    return outcome
  }

  /// Collects what a snapshot does not tell.
  ///
  /// - Returns: the task that does so, which ends with the transfer.
  private func listen(to job: Job) -> Task<Void, Never> {
    let events = job.transfer.events
    return Task { [self] in
      for await event in events {
        switch event.kind {
        case .restarted(let reason): notice("\(job.name): starting over: \(reason)")
        case .mirrorExcluded(let url, let reason):
          notice("\(job.name): a mirror is not used any more: \(url.redacted): \(reason)")
        case .finished(let result):
          let request = job.transfer.request
          if request.method == .get, !request.decodesContent,
            result.response.headerFields.isDoubtful(forPath: request.url.path)
          {
            notice(
              "\(job.name): warning: the server sent something else than the name promises")
          }
        default: break
        }
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

  private func snapshot(of jobs: [Job], since start: ContinuousClock.Instant) -> DisplaySnapshot {
    DisplaySnapshot(
      items: jobs.enumerated().map { index, job in
        DisplayItem(
          id: index, name: job.name, request: job.transfer.request, isUpload: isUpload,
          job.transfer.progress)
      },
      elapsed: (ContinuousClock.now - start) / .seconds(1), isUpload: isUpload)
  }
}

extension DisplayItem {
  /// What the display shows of a transfer.
  fileprivate init(
    id: Int, name: String, request: Request, isUpload: Bool, _ progress: TransferProgress
  ) {
    let state: State =
      switch progress.state {
      case .queued: .queued
      case .connecting: .connecting
      case .running, .finishing: .running
      case .waiting: .waiting(reason: progress.reason ?? "")
      case .paused: .paused
      case .finished: .finished
      case .failed: .failed(progress.reason ?? "")
      case .cancelled: .cancelled
      }
    self.init(
      id: id, name: name, url: request.url.redacted, state: state,
      transferredByteCount: isUpload ? progress.sentByteCount : progress.receivedByteCount,
      resumedByteCount: progress.resumedByteCount,
      totalByteCount: isUpload ? progress.bodyByteCount : progress.totalByteCount,
      bytesPerSecond: progress.bytesPerSecond,
      timeLeft: progress.estimatedTimeLeft.map { $0 / .seconds(1) },
      elapsed: progress.elapsed / .seconds(1), connections: progress.connections)
  }
}
