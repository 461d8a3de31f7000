import Foundation

/// A child process that holds files of a mount open and executes operations, one at a time.
///
/// A read that never returns then costs a test only its deadline.
final class ReaderAgent {
  /// The result of an operation.
  enum Answer: Equatable {
    /// An open: the length that `fstat(2)` shows.
    case opened(length: Int64)
    case length(Int64)
    /// Bytes, and the symbol of `errno` if the reading ended with an error.
    case bytes(count: Int64, sha256: String, failure: String?)
    /// The symbol of `errno`, or `SIGBUS`.
    case failed(String)
    case names([String])
    case closed
  }

  /// An answer and the longest duration of a system call for it.
  struct Reply {
    let answer: Answer
    let seconds: Double
  }

  private let process: ChildProcess
  private var sentCount = 0
  private var answerCount = 0

  init() throws {
    process = try ChildProcess(Python.command(Self.script), input: .pipe)
  }

  deinit { kill() }

  /// Whether an operation is in flight.
  var isBusy: Bool { sentCount > answerCount }

  /// Starts an operation; the previous one must have ended.
  func start(_ operation: String) throws {
    try process.write(line: operation)
    sentCount += 1
  }

  /// The reply to the last started operation, if it arrives within `limit`.
  func reply(within limit: Duration) throws -> Reply? {
    var line: Substring?
    _ = Deadline(after: limit).wait(every: .milliseconds(1)) {
      let lines = process.standardOutput.split(separator: "\n", omittingEmptySubsequences: false)
      if lines.count > answerCount + 1 { line = lines[answerCount] }
      return line != nil || !process.isRunning
    }
    guard let line else {
      guard process.isRunning else {
        throw HarnessError("the reader has ended: \(process.standardError)")
      }
      return nil
    }
    answerCount += 1
    return try Self.reply(line)
  }

  func kill() { process.kill() }

  private static func reply(_ line: Substring) throws -> Reply {
    let words = line.split(separator: " ").map(String.init)
    guard words.count >= 2, let seconds = Double(words[0]) else {
      throw HarnessError("unexpected answer of a reader: \(line)")
    }
    let rest = Array(words.dropFirst(2))
    let number = rest.first.flatMap { Int64($0) }
    switch (words[1], number) {
    case ("opened", let length?): return Reply(answer: .opened(length: length), seconds: seconds)
    case ("length", let length?): return Reply(answer: .length(length), seconds: seconds)
    case ("closed", _): return Reply(answer: .closed, seconds: seconds)
    case ("names", _): return Reply(answer: .names(rest), seconds: seconds)
    case ("failed", _) where rest.count == 1:
      return Reply(answer: .failed(rest[0]), seconds: seconds)
    case ("bytes", let count?) where rest.count == 3:
      let failure = rest[2] == "-" ? nil : rest[2]
      return Reply(
        answer: .bytes(count: count, sha256: rest[1], failure: failure), seconds: seconds)
    default: throw HarnessError("unexpected answer of a reader: \(line)")
    }
  }

  /// The program that executes the operations, one per line.
  ///
  /// - `open ID PATH`, `close ID`, `length ID`
  /// - `read ID OFFSET COUNT`: one pread(2)
  /// - `all ID COUNT`: the whole file by pread(2)s of COUNT bytes, to its end or an error
  /// - `map ID OFFSET COUNT`: through a mapping, in a child, because an error is a SIGBUS
  /// - `list PATH`
  private static let script = """
    import errno, hashlib, mmap, os, signal, sys, time
    handles = {}
    slowest = 0.0

    def timed(call, *arguments):
        global slowest
        start = time.monotonic()
        try:
            return call(*arguments)
        finally:
            slowest = max(slowest, time.monotonic() - start)

    def mapped(descriptor, offset, count):
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as view:
                    data = view[offset:offset + count]
                text = "bytes %d %s -" % (len(data), hashlib.sha256(data).hexdigest())
            except OSError as error:
                text = "failed " + errno.errorcode[error.errno]
            os.write(theirs, text.encode())
            os._exit(0)
        os.close(theirs)
        text = os.read(ours, 4096).decode()
        os.close(ours)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            return "failed " + signal.Signals(os.WTERMSIG(status)).name
        return text

    def whole(descriptor, count):
        digest, offset, failure = hashlib.sha256(), 0, "-"
        while True:
            try:
                data = timed(os.pread, descriptor, count, offset)
            except OSError as error:
                failure = errno.errorcode[error.errno]
                break
            if not data:
                break
            digest.update(data)
            offset += len(data)
        return "bytes %d %s %s" % (offset, digest.hexdigest(), failure)

    def perform(verb, words):
        if verb == "open":
            descriptor = timed(os.open, words[1], os.O_RDONLY | os.O_CLOEXEC)
            handles[words[0]] = descriptor
            return "opened %d" % timed(os.fstat, descriptor).st_size
        if verb == "list":
            return "names " + " ".join(sorted(timed(os.listdir, words[0])))
        descriptor = handles[words[0]]
        if verb == "close":
            del handles[words[0]]
            timed(os.close, descriptor)
            return "closed"
        if verb == "length":
            return "length %d" % timed(os.fstat, descriptor).st_size
        if verb == "read":
            data = timed(os.pread, descriptor, int(words[2]), int(words[1]))
            return "bytes %d %s -" % (len(data), hashlib.sha256(data).hexdigest())
        if verb == "all":
            return whole(descriptor, int(words[1]))
        return timed(mapped, descriptor, int(words[1]), int(words[2]))

    for line in sys.stdin:
        verb, *words = line.split()
        slowest = 0.0
        try:
            text = perform(verb, words)
        except OSError as error:
            text = "failed " + errno.errorcode[error.errno]
        print("%.3f %s" % (slowest, text), flush=True)
    """
}
