import ArgumentParser
import CLinux
import Glibc
import HTTPTransfer
import HTTPTransferCore
import Synchronization

/// Copies the body of a transfer to standard output, as it arrives.
final class StandardOutputCopy: Sendable {
  private let transfer: Transfer
  private let outcome = Mutex<Result<Void, CommandFailure>?>(nil)
  private let timeLimit: Duration?
  private let onAbandon: @Sendable () -> Void

  /// - Parameters:
  ///   - transfer: the transfer; its body was not taken yet.
  ///   - timeLimit: how long it may take; nil for no limit.
  ///   - onAbandon: called before the process ends while the transfer is still running.
  init(
    _ transfer: Transfer, timeLimit: Duration?, onAbandon: @escaping @Sendable () -> Void
  ) {
    self.transfer = transfer
    self.timeLimit = timeLimit
    self.onAbandon = onAbandon
  }

  private func abandon(_ code: Int32) -> Never {
    onAbandon()
    _exit(code)
  }

  /// Returns when everything is written.
  ///
  /// A signal cancels the transfer, and ends the process if that takes more than a second.
  ///
  /// - Throws: ``CommandFailure`` on failure, the exit code of a signal after one.
  func run() throws {
    let main = getpid()
    let start = ContinuousClock.now
    Task { [self] in
      let result = await copy()
      outcome.withLock { $0 = result }
      kill(main, SIGUSR1)
    }
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in TransferRun.endSignals + [SIGUSR1] { sigaddset(&signals, number) }
    var ending: Int32?
    var deadline: ContinuousClock.Instant?
    while true {
      if let result = outcome.withLock({ $0 }) {
        if case .failure = result, let ending { throw ExitCode(128 + ending) }
        // Like a filter that SIGPIPE ends: `| head` is not an error to report.
        guard case .failure(let reason) = result else { return }
        if reason.isBrokenPipe { throw ExitCode(128 + SIGPIPE) }
        throw reason
      }
      if ending == nil, let timeLimit, .now - start >= timeLimit {
        printToStandardError("httpfs: \(CommandFailure.overTime)")
        abandon(TransferExit.timeout.rawValue)
      }
      // The reader of standard output may read nothing.
      if let ending, let deadline, .now >= deadline { abandon(128 + ending) }
      var interval = timespec(tv_sec: 0, tv_nsec: 100_000_000)
      let number = sigtimedwait(&signals, nil, &interval)
      guard number > 0, number != SIGUSR1 else { continue }
      if ending != nil { abandon(128 + number) }
      ending = number
      deadline = .now + TransferRun.cancelTimeout
      transfer.cancel()
    }
  }

  private func copy() async -> Result<Void, CommandFailure> {
    let url = transfer.request.url
    do throws(TransferError) {
      for try await chunk in transfer.body {
        do throws(CommandFailure) {
          try printToStandardOutput(Array(chunk))
        } catch {
          transfer.cancel()
          return .failure(error.ending(with: .disk))
        }
      }
      return .success(())
    } catch {
      let message = "\(url): \(error)\(FailureRemedy.ending(error.remedy))"
      return .failure(CommandFailure(message).ending(with: TransferExit(error)))
    }
  }
}
