import Foundation

/// The access log of a server that writes one line at the end of each request.
struct ServerLog {
  let path: String
  private var offset = 0

  init(path: String) {
    self.path = path
  }

  /// The lines since the last call, once the log no longer grows.
  mutating func takeLines() -> [Data] {
    var lastByteCount: Int64 = -1
    // A server writes a request's line after its last byte: wait until the log stops growing.
    _ = Deadline(after: .seconds(5)).wait(every: .milliseconds(150)) {
      let byteCount = FileStatus.byteCount(of: path) ?? 0
      defer { lastByteCount = byteCount }
      return byteCount == lastByteCount
    }
    let data = FileManager.default.contents(atPath: path) ?? Data()
    let lines = data.dropFirst(offset)
    offset = data.count
    return lines.split(separator: UInt8(ascii: "\n")).map { Data($0) }
  }
}
