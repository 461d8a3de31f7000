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
  init() throws(CommandFailure) {
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
        count = try StreamCalls.read(into: &buffer, from: STDIN_FILENO)
      } catch {
        throw CommandFailure("cannot read standard input", error)
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
        + " directory with TMPDIR")
  }
}
