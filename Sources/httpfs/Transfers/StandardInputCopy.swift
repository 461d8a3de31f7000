import Glibc
import LinuxSystem

/// A copy of standard input, whose length is known and which an upload can send again.
///
/// It is a file without a name in the directory of `TMPDIR`, which ends with the process.
struct StandardInputCopy {
  private let file: Descriptor

  /// A path by which this process can open the file.
  var path: String { "/proc/self/fd/\(file.rawValue)" }

  /// Reads standard input to its end.
  ///
  /// - Throws: ``CommandFailure`` with the exit code of a full disk or of a timeout.
  init(timeLimit: TimeLimit) throws(CommandFailure) {
    let directory = environmentVariable("TMPDIR") ?? "/tmp"
    do throws(ErrorNumber) {
      file = try SystemCalls.createNamelessFile(in: directory)
    } catch {
      throw Self.failure(in: directory, error)
    }
    var buffer = [UInt8](repeating: 0, count: 256 << 10)
    while true {
      let count: Int
      do throws(ErrorNumber) {
        if let left = timeLimit.left {
          let isReady = try StreamCalls.waitForInput(of: STDIN_FILENO, atMost: left)
          // Input that never ends is always ready.
          guard isReady, left > .zero else { throw ErrorNumber(rawValue: ETIMEDOUT) }
        }
        count = try StreamCalls.read(into: &buffer, from: STDIN_FILENO)
      } catch {
        if error.rawValue == ETIMEDOUT { throw .overTime }
        throw CommandFailure("cannot read standard input", error).ending(with: .disk)
      }
      if count == 0 { return }
      do throws(ErrorNumber) {
        try StreamCalls.write(Array(buffer[..<count]), to: file.rawValue)
      } catch {
        throw Self.failure(in: directory, error)
      }
    }
  }

  private static func failure(in directory: String, _ error: ErrorNumber) -> CommandFailure {
    CommandFailure(
      "cannot copy standard input to a temporary file in '\(directory)': \(error); name another"
        + " directory with TMPDIR"
    ).ending(with: .disk)
  }
}
