internal import Glibc

/// Reads and writes at the offset of the descriptor, to the end.
package enum StreamCalls {
  /// Reads a file that a user names to its end (`open(2)`, `read(2)`).
  ///
  /// A file longer than `maximumByteCount` throws `EFBIG`, and `ETIMEDOUT` if a pipe or terminal
  /// lasts beyond `end`.
  package static func contents(
    ofFile path: String, maximumByteCount: Int = 1 << 30, until end: ContinuousClock.Instant? = nil
  ) throws(ErrorNumber) -> [UInt8] {
    // Without O_NONBLOCK, the open itself waits for a writer of a FIFO.
    let flags = O_RDONLY | O_CLOEXEC | (end == nil ? 0 : O_NONBLOCK)
    let file = Descriptor(try checked { Glibc.open(path, flags) })
    return try contents(of: file.rawValue, maximumByteCount: maximumByteCount, until: end)
  }

  /// Reads an open file or pipe from its current offset to its end (`read(2)`).
  ///
  /// More than `maximumByteCount` throws `EFBIG`, and input that lasts beyond `end` `ETIMEDOUT`.
  package static func contents(
    of descriptor: CInt, maximumByteCount: Int = 1 << 30, until end: ContinuousClock.Instant? = nil
  ) throws(ErrorNumber) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 256 << 10)
    while true {
      if let end {
        let isReady = try waitForInput(of: descriptor, atMost: end - .now)
        // Input that never ends is always ready.
        guard isReady, .now < end else { throw ErrorNumber(rawValue: ETIMEDOUT) }
      }
      let count = try read(into: &buffer, from: descriptor)
      if count == 0 { return bytes }
      guard bytes.count + count <= maximumByteCount else { throw ErrorNumber(rawValue: EFBIG) }
      bytes += buffer[..<count]
    }
  }

  /// Reads the next bytes of an open file or pipe (`read(2)`).
  ///
  /// - Returns: how many bytes of `buffer` it has filled; 0 at the end.
  package static func read(
    into buffer: inout [UInt8], from descriptor: CInt
  ) throws(ErrorNumber) -> Int {
    try checked { Glibc.read(descriptor, &buffer, buffer.count) }
  }

  /// Waits until `read(2)` would not block (`poll(2)`), for at most `limit`.
  ///
  /// - Returns: whether it would not.
  package static func waitForInput(
    of descriptor: CInt, atMost limit: Duration
  ) throws(ErrorNumber) -> Bool {
    let end = ContinuousClock.now + limit
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
      // Rounded up, so that the last wait does not become a busy loop.
      let left = (end - .now) / .milliseconds(1)
      let interval = CInt(clamping: Int(min(max(0, left.rounded(.up)), 1e9)))
      if try checked({ poll(&request, 1, interval) }) > 0 { return true }
      if left <= 0 { return false }
    }
  }

  /// Writes to a file that exists, such as those of `/proc` and `/sys`.
  package static func write(_ text: String, toFile path: String) throws(ErrorNumber) {
    let file = Descriptor(try checked { Glibc.open(path, O_WRONLY | O_CLOEXEC) })
    try write(Array(text.utf8), to: file.rawValue)
  }

  /// Writes all bytes at the current offset, even after short writes (`write(2)`).
  package static func write(_ bytes: [UInt8], to descriptor: CInt) throws(ErrorNumber) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = try checked {
        rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      }
      // Keeps a broken file from causing a busy loop.
      if count == 0 { throw ErrorNumber(rawValue: EIO) }
      rest = rest.dropFirst(count)
    }
  }
}
