import CLinux
import Glibc
import LinuxSystem
import TextFormat

/// Hides secrets in URLs and header fields from users who can see this process.
enum Redaction {
  /// Keeps the memory of this process and its children out of core dumps (core(5)).
  ///
  /// A soft limit of zero bytes disables dumps to files, and those to programs that respect it.
  /// With `coredump_filter`, dumps of other programs contain registers but no memory. We do not
  /// make the process undumpable, because an ordinary user could then no longer use its `/proc`
  /// entries or a debugger. A developer can enable complete dumps again with prlimit(1) and by
  /// writing 0x33 to `/proc/PID/coredump_filter`.
  static func leaveMemoryOutOfCoreDumps() {
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 {
      limit.rlim_cur = 0
      setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }
    try? StreamCalls.write("0", toFile: "/proc/self/coredump_filter")
  }

  /// Overwrites secrets in the command line, which `ps` shows to every user of the machine.
  ///
  /// - Returns: the original arguments, without the program's name.
  static func hideSecretsOfCommandLine() -> [String] {
    // Swift makes a copy at the first use; the arguments themselves are changed below.
    let arguments = CommandLine.arguments
    _ = originalArguments
    var previous: [UInt8] = []
    for index in 0..<Int(CommandLine.argc) {
      guard let word = CommandLine.unsafeArgv[index] else { break }
      let bytes = UnsafeMutableRawBufferPointer(start: word, count: strlen(word))
      let original = Array(bytes)
      var hidden = hidingSecrets(in: original, after: previous)
      hideQuery(in: &hidden)
      bytes.copyBytes(from: hidden)
      previous = original
    }
    return Array(arguments.dropFirst())
  }

  /// The original command line, for a process that replaces this one.
  ///
  /// It consists of C strings, because a path need not be UTF-8.
  ///
  /// Unsafe only for the compiler: written once, before other threads start, and never changed.
  nonisolated(unsafe) static let originalArguments: [UnsafeMutablePointer<CChar>?] =
    (0..<Int(CommandLine.argc)).map { CommandLine.unsafeArgv[$0].map { strdup($0) } ?? nil } + [nil]

  /// Overwrites the secrets in a word of a command line.
  ///
  /// - Parameters:
  ///   - word: the word: a URL, or an option with its value, or anything else.
  ///   - previous: the word before it.
  /// - Returns: the word, as long as before.
  static func hidingSecrets(in word: [UInt8], after previous: [UInt8]) -> [UInt8] {
    var word = word
    hideHeaderValue(in: &word, after: previous)
    hideProxyUserInfo(in: &word, after: previous)
    hideURLSecrets(in: &word)
    hideUserInfo(in: &word)
    return word
  }

  private static let replacement = UInt8(ascii: "*")

  /// Hides the value after the name of `-H`, of `--header`, and of a field of `--form`.
  private static func hideHeaderValue(in word: inout [UInt8], after previous: [UInt8]) {
    let options: [(name: String, separator: UInt8)] = [
      ("--header", UInt8(ascii: ":")), ("-H", UInt8(ascii: ":")), ("--form", UInt8(ascii: "=")),
    ]
    for option in options {
      let name = Array(option.name.utf8)
      let isShort = !option.name.hasPrefix("--")
      var start = 0
      if previous != name, !isShort || flagsEnd(in: previous) != previous.count {
        let end = isShort ? flagsEnd(in: word) : word.starts(with: name) ? name.count : nil
        guard let end, word.count > end else { continue }
        start = end
        let isAssigned = word[start] == UInt8(ascii: "=")
        // `--header-file` is another option; `-Hname:value` is this one.
        if !isShort, !isAssigned { continue }
        if isAssigned { start += 1 }
      }
      guard start < word.count, word[start] != UInt8(ascii: "@"),
        let separator = word[start...].firstIndex(of: option.separator)
      else { return }
      for index in word.indices[(separator + 1)...] { word[index] = replacement }
      return
    }
  }

  /// The end of the first `H` in a word of short options (`-H`, `-qH`); nil if there is none.
  private static func flagsEnd(in word: [UInt8]) -> Int? {
    guard word.first == UInt8(ascii: "-"), let flag = word.firstIndex(of: UInt8(ascii: "H")),
      word[1..<flag].allSatisfy({ (0x61...0x7A).contains($0 | 0x20) })
    else { return nil }
    return flag + 1
  }

  /// Hides the userinfo of each proxy after `--proxy`, which may have no scheme.
  private static func hideProxyUserInfo(in word: inout [UInt8], after previous: [UInt8]) {
    let name = Array("--proxy".utf8)
    var start = 0
    if previous != name {
      guard word.starts(with: name + [UInt8(ascii: "=")]) else { return }
      start = name.count + 1
    }
    let separators = Array("|;".utf8)
    while start < word.count {
      let end = word[start...].firstIndex(where: separators.contains) ?? word.count
      if let at = word[start..<end].lastIndex(of: UInt8(ascii: "@")) {
        let mark = Array("://".utf8)
        let scheme = (start..<at).first { word[$0..<at].starts(with: mark) }
        for index in (scheme.map { $0 + mark.count } ?? start)..<at { word[index] = replacement }
      }
      start = end + 1
    }
  }

  /// A word of a command line in a form that a message may show.
  ///
  /// The word may be a malformed URL, such as `http:/user:password@host/path`. If a file of that
  /// name exists, the word is taken for the file.
  static func shown(_ word: String, after previous: String = "") -> String {
    var status = stat()
    if lstat(word, &status) == 0 { return word }
    var shown = hidingSecrets(in: Array(word.utf8), after: Array(previous.utf8))
    hideQuery(in: &shown)
    return String(decoding: shown, as: UTF8.self)
  }

  /// Hides the secrets of the command line's words that a message repeats.
  static func hidingArguments(in message: String) -> String {
    var message = message
    var previous = ""
    for argument in originalArguments.dropFirst() {
      guard let argument else { break }
      let word = String(cString: argument)
      // A message may repeat an option's value without the option.
      var values = [word]
      if word.hasPrefix("--"), let sign = word.firstIndex(of: "=") {
        values.append(String(word[word.index(after: sign)...]))
      } else if word.hasPrefix("-") {
        values.append(String(word.dropFirst(2)))
      }
      for value in values {
        let shown = shown(value, after: previous)
        guard shown != value else { continue }
        for repeated in [value, escapingControls(value)] {
          message = message.replacing(repeated, with: escapingControls(shown))
        }
      }
      previous = word
    }
    return message
  }

  /// Hides the text before the last `@` in `user:password@host/path` and
  /// `http:/user:password@host`, which are URLs without `://`.
  private static func hideUserInfo(in word: inout [UInt8]) {
    for part in word.indices.split(whereSeparator: { word[$0] == UInt8(ascii: " ") }) {
      let mark = Array("://".utf8)
      guard let at = part.last(where: { word[$0] == UInt8(ascii: "@") }),
        word[part.startIndex..<at].contains(UInt8(ascii: ":")),
        !(part.startIndex..<at).contains(where: { word[$0..<at].starts(with: mark) })
      else { continue }
      for index in part.startIndex..<at { word[index] = replacement }
    }
  }

  /// Hides the query of a possible URL without a scheme: `host/path?name=value`.
  private static func hideQuery(in word: inout [UInt8]) {
    guard let mark = word.firstIndex(of: UInt8(ascii: "?")),
      word[mark...].contains(UInt8(ascii: "="))
    else { return }
    for index in word.indices[(mark + 1)...] { word[index] = replacement }
  }

  /// Hides the userinfo, the query and the fragment of all URLs in a word, even of those with too
  /// few or too many slashes.
  private static func hideURLSecrets(in word: inout [UInt8]) {
    let mark = Array(":/".utf8)
    var searched = 0
    while let start = word.indices[searched...].first(where: { word[$0...].starts(with: mark) }) {
      let authorityStart =
        word[(start + 1)...].firstIndex { $0 != UInt8(ascii: "/") } ?? word.count
      let authorityEnd =
        word[authorityStart...].firstIndex {
          $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
        } ?? word.count
      if let at = word[authorityStart..<authorityEnd].lastIndex(of: UInt8(ascii: "@")) {
        for index in authorityStart..<at { word[index] = replacement }
      }
      let secret = word[authorityEnd...].firstIndex {
        $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
      }
      if let secret {
        for index in word.indices[(secret + 1)...] { word[index] = replacement }
      }
      // The colon of the next URL may be the last byte of this one's authority.
      searched = max(authorityStart, authorityEnd - 1)
    }
  }
}
