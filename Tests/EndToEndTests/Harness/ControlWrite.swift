import Foundation

/// Writes to `.control` by a separate process, each batch with one write(2).
struct ControlWrite {
  /// The open flags in addition to `O_WRONLY`, as Python names them.
  var flags = "O_TRUNC"
  /// The words before the command line: a change of user.
  var launcher: [String] = []

  /// Writes `batches`, each of at most 60,000 bytes, one after the other over one handle.
  ///
  /// - Returns: the result of each batch: nil if it was accepted, otherwise the symbol of `errno`;
  ///   one element if the `open` failed.
  func write(_ batches: [[UInt8]], to mount: Mount) throws -> [String?] {
    let hex = batches.map { $0.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) } }
    let text = try output(
      of: launcher + mount.enter + Python.command(Self.script) + [mount.path(".control"), flags]
        + hex.map { $0.joined() }, within: .seconds(60))
    return text.split(separator: "\n").map { $0 == "ok" ? nil : String($0) }
  }

  private static let script = """
    import errno, os, sys
    def say(error):
        print(errno.errorcode[error.errno])
    try:
        descriptor = os.open(sys.argv[1], os.O_WRONLY | getattr(os, sys.argv[2]))
    except OSError as error:
        say(error)
        sys.exit(0)
    for word in sys.argv[3:]:
        data = bytes.fromhex(word)
        try:
            count = os.write(descriptor, data)
            print("ok" if count == len(data) else "short")
        except OSError as error:
            say(error)
    """
}

extension Mount {
  /// Writes one batch to `.control`.
  ///
  /// - Returns: nil if it was accepted, otherwise the symbol of `errno`.
  func control(_ text: String, launcher: [String] = []) throws -> String? {
    let results = try ControlWrite(launcher: launcher).write([Array(text.utf8)], to: self)
    guard results.count == 1 else { throw HarnessError("\(results) of one write") }
    return results[0]
  }

  /// Waits until the kernel has reported to httpfs that no file is open.
  func waitUntilClosed() throws {
    let isClosed = try Deadline(after: .seconds(10)).wait(every: .milliseconds(10)) {
      try status().kernel.openHandles == 0
    }
    guard isClosed else { throw HarnessError("files stay open on \(mountpoint)") }
  }
}
