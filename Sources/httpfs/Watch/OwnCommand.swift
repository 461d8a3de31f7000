import Glibc
import LinuxSystem
import Synchronization

/// Runs a subcommand of this program as a child process that queries a mount in place of this
/// process.
///
/// A process that waits for a hanging mount cannot always be killed, not even by SIGKILL: the
/// kernel keeps it until its request is answered. So a process that must not hang uses a child.
final class OwnCommand: Sendable {
  struct Result {
    /// The exit code; 128 + the signal if a signal ended the process.
    let exitCode: Int32
    let output: [UInt8]
    let errorOutput: String

    /// Why it failed, in one line; nil on success.
    var failure: String? {
      guard exitCode != 0 else { return nil }
      let line = errorOutput.split(separator: "\n").first ?? "exit code \(exitCode)"
      return String(line.hasPrefix("httpfs: ") ? line.dropFirst("httpfs: ".count) : line)
    }
  }

  /// The process, once it was started.
  private let child = Mutex<ChildProcess?>(nil)

  /// Runs the command until it ends; one at a time.
  ///
  /// - Parameter arguments: the words after `httpfs`.
  /// - Returns: Its result and its output.
  /// - Throws: The error of pipe(2) or posix_spawn(3).
  func run(_ arguments: [String]) throws(ErrorNumber) -> Result {
    var output = try ChildPipe()
    var errors = try ChildPipe()
    var program = ChildProgram(.own, ["httpfs"] + arguments)
    program.input = .null
    program.output = .copy(of: output.writeEnd)
    program.errorOutput = .copy(of: errors.writeEnd)
    program.group = .own
    program.signals = .unblocked(resetting: [SIGPIPE])
    let process = try child.withLock { [program] (child) throws(ErrorNumber) in
      let process = try program.start()
      child = process
      return process
    }
    output.closeWriteEnd()
    errors.closeWriteEnd()
    let bytes = Self.read([output.readEnd, errors.readEnd])
    return Result(
      exitCode: (try? process.waitForEnd())?.exitCode ?? -1, output: bytes[0],
      errorOutput: String(decoding: bytes[1], as: UTF8.self))
  }

  /// Kills the process, if there is one, without waiting for its end.
  func kill() { child.withLock { $0 }?.kill() }

  /// Reads from several descriptors to their ends.
  private static func read(_ descriptors: [Int32]) -> [[UInt8]] {
    var bytes = descriptors.map { _ in [UInt8]() }
    var open = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while open.contains(where: { $0.fd >= 0 }) {
      guard poll(&open, nfds_t(open.count), -1) > 0 else { continue }
      for index in open.indices where open[index].fd >= 0 && open[index].revents != 0 {
        let count = Glibc.read(open[index].fd, &buffer, buffer.count)
        if count > 0 {
          bytes[index] += buffer[..<count]
        } else if count == 0 || errno != EINTR {
          // poll(2) ignores negative descriptors.
          open[index].fd = -1
        }
      }
    }
    return bytes
  }
}
