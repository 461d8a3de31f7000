import Foundation

/// A child process that reads at random in several files, and reports every wrong byte, until it is
/// killed.
///
/// Errors are expected once the test ends the mount below it. Before that they are mistakes; see
/// ``errors()``.
final class RandomReader {
  /// A file to read, and its content.
  struct File {
    let path: String
    let seed: UInt64
    let byteCount: Int64
  }

  private let process: ChildProcess
  private let files: [File]

  /// Starts to read.
  ///
  /// - Parameters:
  ///   - files: the files to read.
  ///   - seed: the seed of the positions.
  ///   - threads: how many reads are in flight at a time.
  ///   - sandbox: ends the process at the latest.
  /// - Throws: `HarnessError` if something cannot be started or mounted.
  init(_ files: [File], seed: UInt64, threads: Int = 4, in sandbox: Sandbox) throws {
    self.files = files
    let words = files.flatMap { [$0.path, String($0.byteCount)] }
    process = try sandbox.start(
      Python.command(Self.script) + [String(seed), String(threads)] + words)
  }

  /// The errors of its reads so far.
  func errors() -> [String] {
    process.standardOutput.split(separator: "\n").filter { $0.hasPrefix(Self.errorSign) }
      .map(String.init)
  }

  private static let errorSign = "error: "

  /// Kills the reader.
  ///
  /// - Returns: how many reads it made, and the mistakes in them.
  func stop() -> (readCount: Int, mistakes: [String]) {
    process.kill()
    var mistakes: [String] = []
    var readCount = 0
    // The last line may be incomplete.
    let lines = process.standardOutput.split(
      separator: "\n", omittingEmptySubsequences: false)
    for line in lines.dropLast() where !line.hasPrefix(Self.errorSign) {
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 4, let index = Int(words[0]), files.indices.contains(index),
        let offset = Int64(words[1]), let count = Int64(words[2])
      else {
        mistakes.append("the reader says: \(line)")
        continue
      }
      readCount += 1
      let file = files[index]
      let digest = Digest.ofContent(seed: file.seed, offset: offset, byteCount: count)
      if digest != words[3] {
        mistakes.append("WRONG BYTES: \(count) at \(offset) of \(file.path)")
      }
    }
    return (readCount, mistakes)
  }

  /// Prints one line per read: the file, the position, the number of bytes, and their digest.
  private static let script = """
    import hashlib, os, random, sys, threading
    seed, threads, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    files = list(zip(words[0::2], map(int, words[1::2])))
    def work(number):
        choice = random.Random(seed * 1000 + number)
        descriptors = {}
        position = {}
        while True:
            index = choice.randrange(len(files))
            path, length = files[index]
            count = choice.choice([1, 100, 4096, 20000, 131072, 400000])
            # Some of a sequence, so that there is read-ahead to lose, and some anywhere.
            offset = position.get(index, 0) if choice.random() < 0.7 else choice.randrange(length)
            try:
                if index not in descriptors:
                    descriptors[index] = os.open(path, os.O_RDONLY)
                data = os.pread(descriptors[index], count, offset)
                digest = hashlib.sha256(data).hexdigest()
                sys.stdout.write("%d %d %d %s\\n" % (index, offset, len(data), digest))
                sys.stdout.flush()
                expected = min(count, length - offset)
                # A read may end early where the next one fails, and nowhere else.
                if len(data) < expected:
                    os.pread(descriptors[index], expected - len(data), offset + len(data))
                    sys.stdout.write("short: %d of %d at %d\\n" % (len(data), expected, offset))
                    sys.stdout.flush()
            except OSError as error:
                sys.stdout.write("error: %s of %s\\n" % (error, path))
                sys.stdout.flush()
                return
            position[index] = (offset + len(data)) % length
    for number in range(threads):
        threading.Thread(target=work, args=(number,)).start()
    """
}
