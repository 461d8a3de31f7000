import Glibc

/// Reads of equal length at given offsets of one file, by several threads of a child process.
enum RandomReads {
  /// Reads `byteCount` bytes at each offset.
  ///
  /// - Returns: the SHA-256 of each read, in the order of `offsets`, and the duration of all reads.
  static func run(
    _ path: String, offsets: [Int64], byteCount: Int, threads: Int, within limit: Duration
  ) throws -> (digests: [String], seconds: Double) {
    let places = offsets.map(String.init).joined(separator: ",")
    let text = try output(
      of: Python.command(script) + [path, String(byteCount), String(threads), places],
      within: limit)
    var lines = text.split(separator: "\n").map(String.init)
    guard lines.count == offsets.count + 1, let seconds = Double(lines.removeFirst()) else {
      throw HarnessError("unexpected output of the random reader: \(text.prefix(200))")
    }
    return (lines, seconds)
  }

  private static let script = """
    import hashlib, os, sys, time
    from concurrent.futures import ThreadPoolExecutor
    path, count, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    offsets = [int(word) for word in sys.argv[4].split(",")]
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    start = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        pieces = list(pool.map(lambda offset: os.pread(descriptor, count, offset), offsets))
    print(time.monotonic() - start)
    for piece in pieces:
        print(hashlib.sha256(piece).hexdigest())
    """
}
