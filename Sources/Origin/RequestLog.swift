import FoundationEssentials
import Glibc
import LinuxSystem
import Synchronization

/// The finished requests, in memory and in a file.
final class RequestLog: Sendable {
  /// The maximum number of lines in memory, for long benchmarks.
  ///
  /// The file contains all lines.
  private static let lineLimit = 200_000

  private let lines = Mutex<[String]>([])
  private let descriptor: Int32?

  /// Opens the file and replaces its content; a nil path means no file.
  init(path: String?) throws(FailedOperation) {
    guard let path else {
      descriptor = nil
      return
    }
    let opened = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o644)
    guard opened >= 0 else { throw FailedOperation("open \(path)") }
    descriptor = opened
  }

  deinit { if let descriptor { close(descriptor) } }

  func append(_ record: RequestRecord) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // The record has only numbers and strings, so encoding cannot fail.
    guard let data = try? encoder.encode(record) else { return }
    let line = String(decoding: data, as: UTF8.self)
    lines.withLock { lines in
      if lines.count >= Self.lineLimit { lines.removeFirst(Self.lineLimit / 2) }
      lines.append(line)
      // Write under the lock, to keep the order of the lines in the file. A full disk loses only
      // lines of the file.
      if let descriptor { try? StreamCalls.write(Array((line + "\n").utf8), to: descriptor) }
    }
  }

  /// The lines so far, each with its line feed.
  var text: String {
    let lines = lines.withLock { $0 }
    return lines.isEmpty ? "" : lines.joined(separator: "\n") + "\n"
  }

  func clear() { lines.withLock { $0 = [] } }
}
