import Dispatch
import Foundation
import Glibc
import Synchronization
import Testing

/// One kind of failure, tried at the first call, the second, and so on until no call is left.
///
/// The sweep therefore covers every call that the program really makes.
struct CallSweep: Sendable, CustomTestStringConvertible {
  /// The calls that fail, in the form of ``FailingCalls/Plan``.
  let calls: String
  var errno = EIO
  var effect = FailingCalls.Effect.fail
  /// Whether all calls from the Nth on fail, as on a disk that stays full or broken.
  var staysBroken = false
  /// The step between two tried calls, unless ``isExhaustive``.
  var stride = 1

  var testDescription: String {
    let name = String(cString: strerror(errno))
    return "\(calls): \(effect == .short ? "short" : "\(effect.rawValue), \(name)")"
      + (staysBroken ? ", from then on" : "")
  }

  /// Whether a program must not even notice a failure of this kind.
  var isHarmless: Bool { effect == .short || (errno == EINTR && !staysBroken) }

  /// Whether the failure resembles a lack of space, after which a cache may evict unused files.
  var isLackOfSpace: Bool { [ENOSPC, EDQUOT, EFBIG].contains(errno) }

  /// Whether a message to the user describes the failure in words.
  func isExplained(by text: String) -> Bool {
    text.lowercased().contains(String(cString: strerror(errno)).lowercased())
      || (errno == EROFS && text.contains("read-only"))
  }

  /// The plan of the step that makes the `number`th call fail.
  func plan(failing number: Int) -> FailingCalls.Plan {
    FailingCalls.Plan(
      calls: calls, first: number, count: staysBroken ? nil : 1, errno: errno, effect: effect)
  }

  /// Whether `HTTPFS_CALL_SWEEP=all` selects every call of every kind, which takes some minutes.
  static let isExhaustive = ProcessInfo.processInfo.environment["HTTPFS_CALL_SWEEP"] == "all"

  // MARK: Running

  /// The result of one step.
  struct Step {
    /// Whether there was an Nth call; the sweep ends with the first step without one.
    let hasFailed: Bool
    let violations: [String]
  }

  /// More calls than a program under test makes: a sweep that reaches this number would not end.
  private static let maximumNumber = 2000
  /// The number of steps that run at a time: they mostly wait for processes.
  private static let workerCount = 3

  /// Runs a step for each N.
  ///
  /// - Parameter makeWorker: makes the worker that runs the steps of one thread, one after the
  ///   other.
  /// - Returns: how many calls were made to fail.
  func run(_ makeWorker: @Sendable (_ index: Int) throws -> any CallSweepWorker) -> Int {
    struct Progress {
      var next = 1
      var failedCount = 0
      var end = CallSweep.maximumNumber
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
    if end == Self.maximumNumber { Issue.record("no end of calls") }
    return failedCount
  }
}

/// Runs the steps of a sweep in one thread.
protocol CallSweepWorker {
  /// Works with the failing `number`th call, then without, and returns the violations.
  func step(_ sweep: CallSweep, number: Int) throws -> CallSweep.Step
}
