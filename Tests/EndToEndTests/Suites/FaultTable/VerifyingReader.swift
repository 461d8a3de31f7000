import Foundation
import Glibc

/// A process that opens and reads files of a mount on command.
///
/// It times every call, and compares every byte with a reference file.
///
/// It behaves like an application: after a short read it continues from there, until it has all
/// requested bytes, reaches the end of the file, or gets an error.
final class VerifyingReader {
  /// How one read of a range ended.
  struct Reading {
    let range: Range<Int64>
    /// The number of bytes read from the range's start; all of them were compared.
    let deliveredByteCount: Int64
    /// The symbol of `errno` after them, such as `ESTALE`.
    let error: String?
    /// The file offset of the first byte that differs from the reference.
    let wrongOffset: Int64?
    /// The offset in the middle of the file at which a call ended although the next one returned
    /// bytes.
    ///
    /// A call may end early before an error, which the next call then returns.
    let shortOffset: Int64?
    /// The longest single call.
    let duration: Duration

    var isWhole: Bool {
      error == nil && wrongOffset == nil && shortOffset == nil
        && deliveredByteCount == Int64(range.count)
    }
  }

  /// A file that the process holds open.
  struct Handle {
    fileprivate let number: Int
  }

  /// The result of an open.
  enum Opening {
    case opened(Handle, Duration)
    /// The symbol of `errno`.
    case failed(String, Duration)
  }

  /// The system call that reads bytes.
  enum Call: String {
    case pread, mmap
  }

  private let process: ChildProcess
  private var answerCount = 0
  private var handleCount = 0

  init() throws {
    process = try ChildProcess(Python.command(Self.script), input: .pipe)
  }

  deinit { process.kill() }

  /// How the process ended; nil while it runs.
  var ending: ChildProcess.Ending? { process.ending }

  /// Opens `path` read-only.
  func open(_ path: String, within limit: Duration) throws -> Opening {
    let words = try ask("open \(path)", within: limit)
    let duration = try Self.duration(words, at: 1)
    if words[0] != "opened" { return .failed(words[0], duration) }
    handleCount += 1
    return .opened(Handle(number: handleCount - 1), duration)
  }

  /// The file's length by fstat(2).
  func length(_ handle: Handle, within limit: Duration) throws -> Int64? {
    Int64(try ask("length \(handle.number)", within: limit)[0])
  }

  func close(_ handle: Handle) throws {
    _ = try ask("close \(handle.number)", within: .seconds(20))
  }

  /// Reads `ranges` with several threads.
  ///
  /// `reference` is a local file with the right bytes.
  func read(
    _ handle: Handle, _ ranges: [Range<Int64>], reference: String, threads: Int = 1,
    call: Call = .pread, within limit: Duration
  ) throws -> [Reading] {
    let places = ranges.map { "\($0.lowerBound):\($0.count)" }.joined(separator: ",")
    let words = try ask(
      "\(call.rawValue) \(handle.number) \(threads) \(places) \(reference)", within: limit)
    guard words.count == ranges.count else {
      throw HarnessError("\(words.count) answers to \(ranges.count) reads")
    }
    return try zip(ranges, words).map { range, word in
      let parts = word.split(separator: ":").map(String.init)
      guard parts.count == 5, let count = Int64(parts[0]), let wrong = Int64(parts[2]),
        let short = Int64(parts[3])
      else {
        throw HarnessError("unexpected answer '\(word)' of a reader")
      }
      return Reading(
        range: range, deliveredByteCount: count, error: parts[1] == "-" ? nil : parts[1],
        wrongOffset: wrong < 0 ? nil : wrong, shortOffset: short < 0 ? nil : short,
        duration: try Self.duration(parts, at: 4))
    }
  }

  /// Ends the process, which closes all of its files.
  func end() {
    process.closeInput()
    if process.wait(within: .seconds(5)) == nil { process.kill() }
  }

  private static func duration(_ words: [String], at index: Int) throws -> Duration {
    guard words.count > index, let seconds = Double(words[index]) else {
      throw HarnessError("unexpected answer of a reader: \(words)")
    }
    return .seconds(seconds)
  }

  private func ask(_ question: String, within limit: Duration) throws -> [String] {
    try process.write(line: question)
    var answer: [String]?
    _ = Deadline(after: limit).wait(every: .milliseconds(1)) {
      let lines = process.standardOutput.split(separator: "\n", omittingEmptySubsequences: false)
      if lines.count > answerCount + 1 {
        answer = lines[answerCount].split(separator: " ").map(String.init)
      }
      return answer != nil || !process.isRunning
    }
    guard let answer, !answer.isEmpty else {
      throw HarnessError(
        "no answer within \(limit) to '\(question.prefix(80))'; the reader "
          + (process.ending.map { "has ended: \($0)" } ?? "still runs") + process.standardError)
    }
    answerCount += 1
    return answer
  }

  private static let script = """
    import errno, mmap, os, sys, time
    from concurrent.futures import ThreadPoolExecutor
    handles = []

    def difference(data, wanted, offset):
        if data == wanted:
            return -1
        for index in range(min(len(data), len(wanted))):
            if data[index] != wanted[index]:
                return offset + index
        return offset + min(len(data), len(wanted))

    def read(descriptor, reference, verb, offset, count):
        done, longest, view, short = 0, 0.0, None, -1
        try:
            while done < count:
                start = time.monotonic()
                try:
                    if verb == "mmap":
                        view = view or mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
                        data = view[offset + done:offset + count]
                    else:
                        data = os.pread(descriptor, count - done, offset + done)
                finally:
                    longest = max(longest, time.monotonic() - start)
                wanted = os.pread(reference, max(len(data), 1), offset + done)
                # Nothing, where the reference has bytes, is an end of file too early.
                place = difference(data, wanted, offset + done)
                if place >= 0:
                    return f"{done}:-:{place}:{short}:{longest}"
                if not data:
                    break
                # The call before this one has ended early, and not before an error.
                if done and short < 0:
                    short = offset + done
                done += len(data)
        except OSError as error:
            return f"{done}:{errno.errorcode[error.errno]}:-1:{short}:{longest}"
        return f"{done}:-:-1:{short}:{longest}"

    def answer(words):
        start = time.monotonic()
        if words[0] == "open":
            try:
                handles.append(os.open(words[1], os.O_RDONLY))
                return f"opened {time.monotonic() - start}"
            except OSError as error:
                return f"{errno.errorcode[error.errno]} {time.monotonic() - start}"
        descriptor = handles[int(words[1])]
        if words[0] == "length":
            return str(os.fstat(descriptor).st_size)
        if words[0] == "close":
            os.close(descriptor)
            return "closed"
        reference = os.open(words[4], os.O_RDONLY)
        places = [tuple(map(int, place.split(":"))) for place in words[3].split(",")]
        with ThreadPoolExecutor(int(words[2])) as pool:
            results = list(pool.map(
                lambda place: read(descriptor, reference, words[0], *place), places))
        os.close(reference)
        return " ".join(results)

    for line in sys.stdin:
        print(answer(line.split()), flush=True)
    """
}
