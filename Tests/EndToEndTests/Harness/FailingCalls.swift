import Foundation
import Glibc

/// The system calls of a program on one directory, which fail at our word: the disk of the tests
/// that breaks where it is told to.
///
/// By a library that the dynamic linker puts before libc; its header (Tests/FailingCalls) documents
/// plan and log. So the product under test is the one that is shipped.
final class FailingCalls {
  /// What becomes of the calls that are chosen.
  enum Effect: String, Sendable {
    /// Nothing is done.
    case fail
    /// A write or read transfers half of its bytes and succeeds, as the kernel may at any time.
    case short
    /// A write transfers half and fails; anything else is done and then reported as failed.
    case torn
    /// A call that moves no bytes waits until the plan is another one, and then is done.
    case held
    /// A call that moves no bytes waits as many milliseconds as ``Plan/errno`` says, and then is
    /// done.
    case slow
  }

  /// Which calls fail, and how.
  struct Plan: Sendable {
    /// Names separated by commas, or `all`.
    var calls = "all"
    /// How the names of the files begin; nil for any.
    var filePrefix: String?
    /// The first of these calls that fails, counted from 1 since the plan was made.
    var first = 1
    /// How many fail from there on; nil for all.
    var count: Int? = 1
    var errno = EIO
    var effect = Effect.fail
  }

  /// A call on a file of the directory, as the library logged it.
  struct Call {
    enum Outcome: Equatable {
      case done
      /// It waits; its outcome is its own call in the log.
      case held
      case short
      case failed(CInt)
    }

    /// Which call of the plan it was, from 1; 0 where the plan does not name it.
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

  /// What is counted: this directory and all below it.
  let directory: String
  private let planPath: String
  private let logPath: String

  /// Lets everything pass until ``fail(_:)``.
  ///
  /// - Parameters:
  ///   - directory: the real path of a directory, which need not exist yet.
  ///   - sandbox: where the plan and the log go.
  /// - Throws: `HarnessError` if they cannot be written.
  init(below directory: String, in sandbox: Sandbox) throws {
    self.directory = directory
    let name = UUID().uuidString
    planPath = sandbox.path("plan-\(name)")
    logPath = sandbox.path("calls-\(name)")
    pass()
  }

  /// What is put before a command line, so the command's calls are counted and fail.
  var launcher: [String] {
    get throws {
      // Built beside the programs, because the package has it as a product.
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

  /// Makes calls fail from now on; they are counted anew.
  func fail(_ plan: Plan) throws {
    let words = [
      plan.calls, plan.filePrefix ?? "*", "\(plan.first)", "\(plan.count ?? 0)", "\(plan.errno)",
      plan.effect.rawValue,
    ]
    try setPlan(words.joined(separator: " "))
  }

  /// Lets everything pass from now on.
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
    // In one step: the program may read it at any moment.
    try text.write(toFile: planPath, atomically: true, encoding: .utf8)
  }
}
