import Foundation
import Glibc

/// Makes a program's system calls on one directory fail on command: a disk that breaks on request.
///
/// The dynamic linker loads a library before libc; its header (Tests/FailingCalls) documents the
/// plan and the log. The product under test is therefore the shipped one.
final class FailingCalls {
  /// The effect on the chosen calls.
  enum Effect: String, Sendable {
    /// The call does nothing and fails.
    case fail
    /// A write or read transfers half of its bytes and succeeds, as the kernel may at any time.
    case short
    /// A write transfers half and fails; any other call is executed and then reported as failed.
    case torn
    /// A call that transfers no bytes waits until no plan holds calls, at most 20 s, and is then
    /// executed.
    case held
    /// A call that transfers no bytes waits for ``Plan/errno`` milliseconds, and is then executed.
    case slow
  }

  /// Selects the calls that fail, and how they fail.
  struct Plan: Sendable {
    /// Names separated by commas, or `all`.
    var calls = "all"
    /// The prefix of the files' names; nil for any.
    var filePrefix: String?
    /// The first of these calls that fails, counted from 1 since the plan was created.
    var first = 1
    /// How many calls fail from there on; nil for all.
    var count: Int? = 1
    var errno = EIO
    var effect = Effect.fail
  }

  /// A call on a file of the directory, as the library logged it.
  struct Call {
    enum Outcome: Equatable {
      case done
      /// The call waits; the log has its outcome as a separate call.
      case held
      case short
      case failed(CInt)
    }

    /// The number of the call in the plan, from 1; 0 if the plan does not name it.
    let position: Int
    let name: String
    let outcome: Outcome
    let offset: Int64
    let byteCount: Int64
    /// Relative to the directory, as the file was opened.
    let path: String

    /// The last component of the path.
    var fileName: String { (path as NSString).lastPathComponent }
  }

  /// The directory whose calls are counted, with everything below it.
  let directory: String
  private let planPath: String
  private let logPath: String

  /// Lets all calls pass until ``fail(_:)``.
  ///
  /// - Parameters:
  ///   - directory: the real path of a directory, which may not exist yet.
  ///   - sandbox: the place of the plan and the log.
  /// - Throws: `HarnessError` if they cannot be written.
  init(below directory: String, in sandbox: Sandbox) throws {
    self.directory = directory
    let name = UUID().uuidString
    planPath = sandbox.path("plan-\(name)")
    logPath = sandbox.path("calls-\(name)")
    pass()
  }

  /// The words before a command line that make the command's calls count and fail.
  var launcher: [String] {
    get throws {
      // The library is built beside the programs, because it is a product of the package.
      let library =
        (try Products.httpfs as NSString).deletingLastPathComponent + "/libFailingCalls.so"
      guard access(library, R_OK) == 0 else {
        throw HarnessError("no \(library); run `swift build --build-tests`")
      }
      // env(1) becomes the command, so the child's process identifier is the command's.
      return [
        "env", Host.preloading(library), "FAILING_CALLS_DIRECTORY=\(directory)",
        "FAILING_CALLS_PLAN=\(planPath)", "FAILING_CALLS_LOG=\(logPath)",
      ]
    }
  }

  /// Makes calls fail from now on, and restarts their count.
  func fail(_ plan: Plan) throws {
    let words = [
      plan.calls, plan.filePrefix ?? "*", "\(plan.first)", "\(plan.count ?? 0)", "\(plan.errno)",
      plan.effect.rawValue,
    ]
    try setPlan(words.joined(separator: " "))
  }

  /// Lets all calls pass from now on.
  func pass() {
    unlink(planPath)
  }

  /// All calls so far, in the order in which they ended.
  func calls() throws -> [Call] {
    guard let data = FileManager.default.contents(atPath: logPath) else { return [] }
    return try String(decoding: data, as: UTF8.self).split(separator: "\n").map { line in
      let fields = line.split(separator: " ", maxSplits: 5).map(String.init)
      guard fields.count == 6, let position = Int(fields[0]), let offset = Int64(fields[3]),
        let byteCount = Int64(fields[4])
      else { throw HarnessError("not a line of the log of calls: \(line)") }
      let outcome: Call.Outcome
      switch fields[2] {
      case "ok": outcome = .done
      case "held": outcome = .held
      case "short": outcome = .short
      default:
        guard let number = CInt(fields[2]) else {
          throw HarnessError("not an outcome in the log of calls: \(line)")
        }
        outcome = .failed(number)
      }
      return Call(
        position: position, name: fields[1], outcome: outcome, offset: offset,
        byteCount: byteCount, path: fields[5])
    }
  }

  private func setPlan(_ text: String) throws {
    // Write atomically: the program may read the plan at any moment.
    try text.write(toFile: planPath, atomically: true, encoding: .utf8)
  }
}
