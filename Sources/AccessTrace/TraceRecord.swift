/// One operation of a program on a file of a mount, as the kernel reported it.
///
/// `httpfs mount --trace` writes records as text and `httpfs replay` reads them. A record is a line
/// of seven fields separated by tabs: start and end (seconds), operation, handle, offset, byte
/// count, name. Only `open` has a name; its byte count is the file's length, empty if unknown.
/// `close` has neither offset nor byte count.
package struct TraceRecord: Sendable, Equatable {
  package enum Operation: Sendable, Equatable {
    /// A file is opened: its name, and its length in bytes if known.
    case open(name: String, length: Int64?)
    /// Bytes are read, perhaps fewer than requested.
    case read(offset: Int64, byteCount: Int64)
    /// The last descriptor is closed.
    case close
  }

  /// Seconds from the start of the trace to the request.
  package var start: Double
  /// Seconds from the start of the trace to the answer.
  package var end: Double
  /// Identifies the open file that the operation uses or opens; never reused.
  package var handle: UInt64
  package var operation: Operation

  package init(start: Double, end: Double, handle: UInt64, operation: Operation) {
    self.start = start
    self.end = end
    self.handle = handle
    self.operation = operation
  }

  /// The line, its newline included.
  package var line: String {
    let times = "\(Self.seconds(start))\t\(Self.seconds(end))"
    switch operation {
    case .open(let name, let length):
      return "\(times)\topen\t\(handle)\t\t\(length.map(String.init) ?? "")\t\(name)\n"
    case .read(let offset, let byteCount):
      return "\(times)\tread\t\(handle)\t\(offset)\t\(byteCount)\t\n"
    case .close:
      return "\(times)\tclose\t\(handle)\t\t\t\n"
    }
  }

  /// A time with six decimals.
  private static func seconds(_ value: Double) -> String {
    let microseconds = Int64((max(0, min(value, 1e12)) * 1e6).rounded())
    let fraction = String(microseconds % 1_000_000)
    return
      "\(microseconds / 1_000_000).\(String(repeating: "0", count: 6 - fraction.count))\(fraction)"
  }
}
