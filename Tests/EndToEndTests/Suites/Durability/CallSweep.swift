import Dispatch
import Foundation
import Glibc
import Synchronization
import Testing

/// One kind of failure, tried at the first call, the second, and so on until no call is left that
/// could fail: so "every N" is what the program really does.
struct CallSweep: Sendable, CustomTestStringConvertible {
  /// The calls that fail, as ``FailingCalls/Plan`` has them.
  let calls: String
  var errno = EIO
  var effect = FailingCalls.Effect.fail
  /// Whether all calls from the Nth on fail, as on a disk that stays full or broken.
  var staysBroken = false
  /// Every so manieth call is tried, unless ``isExhaustive``.
  var stride = 1

  var testDescription: String {
    let name = String(cString: strerror(errno))
    return "\(calls): \(effect == .short ? "short" : "\(effect.rawValue), \(name)")"
      + (staysBroken ? ", from then on" : "")
  }

  /// Whether a failure of this kind is one that a program must not even notice.
  var isHarmless: Bool { effect == .short || (errno == EINTR && !staysBroken) }

  /// Whether it looks as if space ran out, upon which a cache may evict what nobody reads.
  var isLackOfSpace: Bool { [ENOSPC, EDQUOT, EFBIG].contains(errno) }

  /// Whether a message to the user says in words what has failed.
  func isExplained(by text: String) -> Bool {
    text.lowercased().contains(String(cString: strerror(errno)).lowercased())
      || (errno == EROFS && text.contains("read-only"))
  }

  /// What is made to fail in the step that fails the `number`th call.
  func plan(failing number: Int) -> FailingCalls.Plan {
    FailingCalls.Plan(
      calls: calls, first: number, count: staysBroken ? nil : 1, errno: errno, effect: effect)
  }

  /// Whether `HTTPFS_CALL_SWEEP=all` asks for every call of every kind: some minutes.
  static let isExhaustive = ProcessInfo.processInfo.environment["HTTPFS_CALL_SWEEP"] == "all"

  // MARK: Running

  /// What one step has come to.
  struct Step {
    /// Whether there was an Nth call at all; the sweep ends with the first step that has none.
    let hasFailed: Bool
    let violations: [String]
  }

  /// How many calls no program under test makes: a sweep that gets there never ends by itself.
  private static let greatestNumber = 2000
  /// Steps that run at a time: they wait for processes most of the time.
  private static let workerCount = 3

  /// Runs a step for each N.
  ///
  /// - Parameter makeWorker: makes what runs the steps of one thread, one after the other.
  /// - Returns: how many calls were made to fail.
  func run(_ makeWorker: @Sendable (_ index: Int) throws -> any CallSweepWorker) -> Int {
    struct Progress {
      var next = 1
      var failedCount = 0
      var end = CallSweep.greatestNumber
      var violations: [String] = []
    }
    let progress = Mutex(Progress())
    let stride = Self.isExhaustive ? 1 : self.stride
    DispatchQueue.concurrentPerform(iterations: Self.workerCount) { index in
      do {
        let worker = try makeWorker(index)
        while let number = progress.withLock({ progress -> Int? in
          guard progress.next < progress.end else { return nil }
          defer { progress.next += stride }
          return progress.next
        }) {
          let step = try worker.step(self, number: number)
          progress.withLock {
            if step.hasFailed { $0.failedCount += 1 } else { $0.end = min($0.end, number) }
            $0.violations += step.violations.map { "N = \(number): \($0)" }
          }
        }
      } catch {
        progress.withLock {
          $0.violations.append("\(error)")
          $0.end = 0
        }
      }
    }
    let (failedCount, end, violations) = progress.withLock {
      ($0.failedCount, $0.end, $0.violations)
    }
    for violation in violations { Issue.record(Comment(rawValue: violation)) }
    if end == Self.greatestNumber { Issue.record("no end of calls") }
    return failedCount
  }
}

/// Runs the steps of a sweep that fall to one thread.
protocol CallSweepWorker {
  /// Does the work with the `number`th call failing, then without, and says what was not as it
  /// must be.
  func step(_ sweep: CallSweep, number: Int) throws -> CallSweep.Step
}
