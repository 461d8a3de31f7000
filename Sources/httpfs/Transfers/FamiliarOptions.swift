/// Options of curl, wget and aria2 that `httpfs get` understands, and the ways in which other
/// programs are asked for their version, because people have them in their fingers.
///
/// They are replaced before the command line is parsed, so that help shows one name for each thing.
enum FamiliarOptions {
  /// `words` with the familiar options replaced or, if `get` does so anyway, dropped.
  ///
  /// - Throws: ``CommandFailure`` if an option means something else to another program, and the
  ///   words after it show that this was meant.
  static func replaced(_ words: [String]) throws(CommandFailure) -> [String] {
    if words == ["-V"] || words == ["version"] { return ["--version"] }
    guard words.first == "get" else { return words }
    var result: [String] = []
    var rest = words[...]
    while let next = rest.popFirst() {
      if next == "--" { return result + [next] + rest }
      let letters = try separated(next)
      let word = letters[0]
      rest = letters.dropFirst() + rest
      switch word {
      // Their values may look like options.
      case "-o", "-i", "-x", "-j", "-H":
        result.append(word)
        if let value = rest.popFirst() { result.append(value) }
      // Resume, ask whether a file has changed, follow redirects, take the remote time.
      case "-c", "--continue", "-N", "--timestamping", "-L", "--location", "-R": break
      // A listing never leads up, a failure is never stored as a file, and always told.
      case "-np", "--no-parent", "-f", "--fail", "-S", "--show-error": break
      // The names have no host, and one URL no directories.
      case "-nH", "--no-host-directories", "-nd", "--no-directories": break
      case "-C" where rest.first == "-": rest.removeFirst()
      case "-nc", "--no-clobber": result.append("--skip-existing")
      case "-s", "--silent", "-k":
        try refuseSize(after: word, rest.first)
        result.append(word == "-k" ? "--insecure" : "--quiet")
      case "-J", "--remote-header-name": result.append("--content-disposition")
      case "-l", "--level":
        guard let level = rest.popFirst() else { return result + [word] }
        result += depth(ofLevel: level)
      case "-P", "-d", "--dir", "--directory-prefix":
        guard let directory = rest.popFirst() else { return result + [word] }
        // An unset variable of a script must not put files into the root directory.
        guard !directory.isEmpty else {
          throw CommandFailure("\(word) needs a directory, and '' is none")
        }
        result += ["--output", directory.hasSuffix("/") ? directory : directory + "/"]
      // curl's -O takes the name of the URL; that of wget is followed by a name.
      case "-O", "--remote-name":
        if word == "-O", let name = rest.first, !name.contains("://"),
          !name.hasPrefix("-") || name == "-"
        {
          result += ["--output", name]
          rest.removeFirst()
        }
      default: result.append(word)
      }
    }
    return result
  }

  /// Letters without a value, of `get` and of other programs.
  private static let flags = Set("JLRSNcfkqrs")
  /// The letters that people write behind curl's -O.
  private static let flagsBesideO = Set("JLRSfs")
  /// Letters that take the rest of their word for their value.
  private static let letters = Set("CHOPdijlox")

  /// The options that stand together in a word, as in `-fsSLo` and `-qO-`, as words of their own;
  /// the word itself if a letter is unknown.
  ///
  /// - Throws: ``CommandFailure`` if it means one thing to curl and another one to wget.
  private static func separated(_ word: String) throws(CommandFailure) -> [String] {
    guard word.hasPrefix("-"), !word.hasPrefix("--"), word.count > 2 else { return [word] }
    var options: [String] = []
    var rest = word.dropFirst()
    while let letter = rest.popFirst() {
      if letter == "n", let second = rest.popFirst(), "pcdH".contains(second) {
        options.append("-n\(second)")
      } else if flags.contains(letter) || rest.isEmpty && letters.contains(letter) {
        options.append("-\(letter)")
      } else if letter == "O", rest.allSatisfy(flagsBesideO.contains) {
        // curl's: the name is that of the URL.
        options.append("-O")
      } else if letter == "O", rest.allSatisfy(flags.contains) {
        throw CommandFailure(
          "'\(word)' means options to curl, and a file to wget: write -O and the rest apart")
      } else if letters.contains(letter) {
        return options + ["-\(letter)", String(rest)]
      } else {
        return [word]
      }
    }
    return options
  }

  /// wget counts the listing itself as a level, and has 0 for no limit.
  private static func depth(ofLevel level: String) -> [String] {
    guard level != "0", level != "inf" else { return [] }
    return ["--depth", Int(level).map { "\(max(1, $0) - 1)" } ?? level]
  }

  /// Refuses `-k 1M` and `-s 5` of aria2.
  private static func refuseSize(
    after word: String, _ next: String?
  ) throws(CommandFailure) {
    guard let next, let first = next.first, first.isASCII, first.isNumber,
      next.dropFirst().allSatisfy({ $0.isNumber || "KkMmGg".contains($0) })
    else { return }
    throw CommandFailure(
      word == "-k"
        ? "-k is curl's here, do not verify servers, and takes no size: '\(next)' of aria2's -k "
          + "is not needed"
        : "-s is curl's here, print errors only, and takes no number: write -x \(next) for so many "
          + "connections per file")
  }
}
