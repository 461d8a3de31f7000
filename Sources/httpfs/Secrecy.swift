import Glibc

/// Keeps what URLs and header fields may hold of secrets from those who look at this process.
enum Secrecy {
  /// Keeps the memory of this process, and of those that it starts, out of core dumps (core(5)).
  ///
  /// A soft limit of zero bytes ends dumps to files, and those to programs that heed it; what others
  /// get holds no memory, by `coredump_filter`, but registers. Not by making the process undumpable,
  /// which would take its `/proc` entries and its debugger from an ordinary user. A developer gets
  /// whole dumps again with prlimit(1) and by writing 0x33 to `/proc/PID/coredump_filter`.
  static func leaveMemoryOutOfCoreDumps() {
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 {
      limit.rlim_cur = 0
      setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    }
    let descriptor = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = write(descriptor, "0", 1)
    close(descriptor)
  }

  /// Overwrites secrets in the command line that `ps` shows to every user of the machine.
  ///
  /// - Returns: the arguments as they were, without the program's name.
  static func hideSecretsOfCommandLine() -> [String] {
    // A copy, which Swift makes at the first use: the arguments themselves are changed below.
    let arguments = CommandLine.arguments
    _ = originalArguments
    var previous: [UInt8] = []
    for index in 0..<Int(CommandLine.argc) {
      guard let word = CommandLine.unsafeArgv[index] else { break }
      let bytes = UnsafeMutableRawBufferPointer(start: word, count: strlen(word))
      let original = Array(bytes)
      bytes.copyBytes(from: hidingSecrets(in: original, after: previous))
      previous = original
    }
    return Array(arguments.dropFirst())
  }

  /// The command line as it was, for a process that takes this one's place; kept as C strings,
  /// because a path need not be UTF-8.
  ///
  /// Unsafe only for the compiler: written once, before any thread, and never changed.
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
    return word
  }

  private static let replacement = UInt8(ascii: "*")

  /// Hides what follows the name of `-H` and `--header`, and of a field of `--form`.
  private static func hideHeaderValue(in word: inout [UInt8], after previous: [UInt8]) {
    let options: [(name: String, separator: UInt8)] = [
      ("--header", UInt8(ascii: ":")), ("-H", UInt8(ascii: ":")), ("--form", UInt8(ascii: "=")),
    ]
    for option in options {
      let name = Array(option.name.utf8)
      var start = 0
      if previous != name {
        guard word.starts(with: name), word.count > name.count else { continue }
        start = name.count
        let isAssigned = word[start] == UInt8(ascii: "=")
        // `--header-file` is another option; `-Hname:value` is this one.
        if option.name.hasPrefix("--"), !isAssigned { continue }
        if isAssigned { start += 1 }
      }
      guard start < word.count, word[start] != UInt8(ascii: "@"),
        let separator = word[start...].firstIndex(of: option.separator)
      else { return }
      for index in word.indices[(separator + 1)...] { word[index] = replacement }
      return
    }
  }

  /// Hides the userinfo of each proxy after `--proxy`, which may lack a scheme.
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

  /// Hides the userinfo and the query of the URLs in a word, wherever they begin.
  private static func hideURLSecrets(in word: inout [UInt8]) {
    let mark = Array("://".utf8)
    var searched = 0
    while let start = word.indices[searched...].first(where: { word[$0...].starts(with: mark) }) {
      let authorityStart = start + mark.count
      let authorityEnd =
        word[authorityStart...].firstIndex {
          $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
        } ?? word.count
      if let at = word[authorityStart..<authorityEnd].lastIndex(of: UInt8(ascii: "@")) {
        for index in authorityStart..<at { word[index] = replacement }
      }
      if let query = word[authorityEnd...].firstIndex(of: UInt8(ascii: "?")) {
        for index in word.indices[(query + 1)...] { word[index] = replacement }
      }
      // The next URL's colon may be the last byte of this one's authority.
      searched = max(authorityStart, authorityEnd - 1)
    }
  }
}
