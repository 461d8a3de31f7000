import Foundation
import Glibc

/// A file that a child process holds open and reads on command.
///
/// A read that never returns then costs a test only its deadline.
final class HeldFile {
  /// The result of one read.
  enum Reading: Equatable {
    /// The count and the SHA-256 of the bytes.
    case bytes(count: Int, sha256: String)
    /// The symbol of `errno`, such as `ESTALE`.
    case failed(String)
  }

  private let process: ChildProcess
  private var answerCount = 0

  /// Opens `path` read-only in a new process.
  ///
  /// - Throws: `HarnessError` with the symbol of `errno` if the open fails.
  init(_ path: String, enter: [String] = []) throws {
    process = try ChildProcess(enter + Python.command(Self.script) + [path], input: .pipe)
    let answer = try nextAnswer(within: .seconds(20))
    guard answer == "open" else { throw HarnessError("open of \(path): \(answer)") }
  }

  deinit { process.kill() }

  /// Reads `byteCount` bytes at `offset` with one pread(2).
  func read(at offset: Int64, _ byteCount: Int, within limit: Duration = .seconds(20)) throws
    -> Reading
  {
    try process.write(line: "read \(offset) \(byteCount)")
    return Self.reading(try nextAnswer(within: limit))
  }

  /// Reads `byteCount` bytes at `offset` through a new mapping of the file.
  func readMapped(at offset: Int64, _ byteCount: Int, within limit: Duration = .seconds(20)) throws
    -> Reading
  {
    try process.write(line: "map \(offset) \(byteCount)")
    return Self.reading(try nextAnswer(within: limit))
  }

  /// The file's length according to fstat(2).
  func length() throws -> Int64? {
    try process.write(line: "length 0 0")
    return Int64(try nextAnswer(within: .seconds(20)))
  }

  func close() {
    process.closeInput()
    if process.wait(within: .seconds(5)) == nil { process.kill() }
  }

  private static func reading(_ answer: String) -> Reading {
    let words = answer.split(separator: " ").map(String.init)
    guard words.count == 2, let count = Int(words[0]) else { return .failed(answer) }
    return .bytes(count: count, sha256: words[1])
  }

  private func nextAnswer(within limit: Duration) throws -> String {
    var answer: String?
    _ = Deadline(after: limit).wait(every: .milliseconds(1)) {
      let lines = process.standardOutput.split(separator: "\n", omittingEmptySubsequences: false)
      if lines.count > answerCount + 1 { answer = String(lines[answerCount]) }
      return answer != nil || !process.isRunning
    }
    guard let answer else {
      throw HarnessError("no answer within \(limit) from a reader: \(process.standardError)")
    }
    answerCount += 1
    return answer
  }

  private static let script = """
    import errno, hashlib, mmap, os, sys
    def say(text):
        print(text, flush=True)
    try:
        descriptor = os.open(sys.argv[1], os.O_RDONLY)
    except OSError as error:
        say(errno.errorcode[error.errno])
        sys.exit(1)
    say("open")
    for line in sys.stdin:
        verb, offset, count = line.split()
        offset, count = int(offset), int(count)
        try:
            if verb == "length":
                say(str(os.fstat(descriptor).st_size))
                continue
            if verb == "map":
                with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as view:
                    data = view[offset:offset + count]
            else:
                data = os.pread(descriptor, count, offset)
            say(str(len(data)) + " " + hashlib.sha256(data).hexdigest())
        except OSError as error:
            say(errno.errorcode[error.errno])
    """
}

/// Python, the language of the tests' readers.
enum Python {
  /// The command line that runs `script`; arguments may follow.
  static func command(_ script: String) -> [String] {
    // Prefer Debian's interpreter: a version manager's shim starts slowly.
    let interpreter = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3"
    return [interpreter, "-c", script]
  }
}
