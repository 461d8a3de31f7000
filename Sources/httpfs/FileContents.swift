import Glibc

/// Reads a file, or standard input if `path` is nil, to its end.
///
/// - Parameters:
///   - path: The file; nil for standard input.
///   - maximumByteCount: A longer file throws `EFBIG`.
/// - Returns: All bytes.
/// - Throws: The error of open(2) or read(2).
func contents(
  ofFile path: String?, maximumByteCount: Int = 1 << 30
) throws(SystemError) -> [UInt8] {
  let descriptor = path.map { open($0, O_RDONLY | O_CLOEXEC) } ?? STDIN_FILENO
  guard descriptor >= 0 else { throw .last }
  defer { if path != nil { close(descriptor) } }
  return try contents(of: descriptor, maximumByteCount: maximumByteCount)
}

/// Reads an open file to its end.
///
/// - Parameters:
///   - descriptor: The file.
///   - maximumByteCount: A longer file throws `EFBIG`.
/// - Returns: All bytes from the current offset on.
/// - Throws: The error of read(2).
func contents(
  of descriptor: Int32, maximumByteCount: Int = 1 << 30
) throws(SystemError) -> [UInt8] {
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 256 * 1024)
  while true {
    let count = read(descriptor, &buffer, buffer.count)
    if count == 0 { return bytes }
    if count < 0 {
      if errno == EINTR { continue }
      throw .last
    }
    guard bytes.count + count <= maximumByteCount else { throw SystemError(code: EFBIG) }
    bytes += buffer[..<count]
  }
}
