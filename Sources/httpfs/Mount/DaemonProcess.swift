import ArgumentParser
import Glibc
import LinuxSystem

/// `--daemon`: the command starts itself again as a process in a new session, and returns when that
/// process reports that the mount is ready.
///
/// It starts a new process instead of forking, so that the child starts as clean as the parent did.
/// The child reports errors to the same standard error until it has mounted.
enum DaemonProcess {
  private static let variable = "HTTPFS_DAEMON"

  /// Whether this process is the one in the background.
  static var isDaemon: Bool { environmentVariable(variable) != nil }

  /// Starts the background process; returns when it has mounted.
  ///
  /// - Throws: `ExitCode` of the child, which has already reported why, or ``CommandFailure``.
  static func start() throws {
    var pipe: ChildPipe
    do {
      pipe = try ChildPipe()
    } catch {
      throw CommandFailure("cannot make a pipe", error)
    }
    let words = Redaction.originalArguments.compactMap { $0.map { String(cString: $0) } }
    var program = ChildProgram(.own, words)
    program.variables = [(variable, "1")]
    program.output = .copy(of: pipe.writeEnd)
    program.group = .ownSession
    let child: ChildProcess
    do {
      child = try program.start()
    } catch {
      throw CommandFailure("cannot start the background process", error)
    }
    pipe.closeWriteEnd()
    let line = firstLine(of: pipe.readEnd)
    guard line.isEmpty else { return try printToStandardOutput(line) }
    // The child has ended without mounting and has reported why.
    if case .exited(let code) = try? child.waitForEnd(), code != 0 { throw ExitCode(code) }
    throw ExitCode(1)
  }

  /// Detaches the background process from the terminal, once it has mounted.
  static func detach() {
    replaceWithNull([STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO])
  }

  private static func firstLine(of descriptor: Int32) -> [UInt8] {
    var line: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1024)
    while line.last != UInt8(ascii: "\n") {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return [] }
      line += buffer[..<count]
    }
    return line
  }
}
