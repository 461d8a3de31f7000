internal import Glibc
internal import LinuxSystem

/// What libfuse, and its helper fusermount3, print to standard error.
///
/// libfuse has a function for its own messages, but the helper writes to the descriptor.
enum CapturedErrors {
  /// Runs `body`, and returns its result with what was printed meanwhile, without empty lines.
  ///
  /// Messages of other threads are captured, too. If nothing can be captured, all are printed.
  static func during<Result>(_ body: () -> Result) -> (result: Result, lines: [String]) {
    guard let file = try? SystemCalls.createMemoryFile(label: "httpfs-errors") else {
      return (body(), [])
    }
    let original = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
    guard original >= 0, dup2(file.rawValue, STDERR_FILENO) >= 0 else {
      if original >= 0 { Descriptor.close(original) }
      return (body(), [])
    }
    let result = body()
    dup2(original, STDERR_FILENO)
    Descriptor.close(original)
    lseek(file.rawValue, 0, SEEK_SET)
    let bytes = (try? StreamCalls.contents(of: file.rawValue)) ?? []
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    return (result, lines)
  }
}
