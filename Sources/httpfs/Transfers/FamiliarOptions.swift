/// Options of curl, wget and aria2 that `httpfs get` understands, and the ways in which other
/// programs are asked for their version, because people have them in their fingers.
///
/// They are replaced before the command line is parsed, so that help shows one name for each thing.
enum FamiliarOptions {
  /// `words` with the familiar options replaced or, if `get` does so anyway, dropped.
  static func replaced(_ words: [String]) -> [String] {
    if words == ["-V"] || words == ["version"] { return ["--version"] }
    guard words.first == "get" else { return words }
    var result: [String] = []
    var rest = words.flatMap(separated)[...]
    while let word = rest.popFirst() {
      switch word {
      case "--": return result + [word] + rest
      // Resume, ask whether a file has changed, follow redirects, take the remote time.
      case "-c", "--continue", "-N", "--timestamping", "-L", "--location", "-R": break
      // A listing never leads up.
      case "-np", "--no-parent": break
      case "-C" where rest.first == "-": rest.removeFirst()
      case "-nc", "--no-clobber": result.append("--skip-existing")
      case "-s", "--silent": result.append("--quiet")
      case "-k": result.append("--insecure")
      case "-J", "--remote-header-name": result.append("--content-disposition")
      case "-P", "-d", "--dir", "--directory-prefix":
        guard let directory = rest.popFirst() else { return result + [word] }
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

  /// The letters of curl that stand together, as in `-OJL`, as words of their own.
  private static func separated(_ word: String) -> [String] {
    let letters = word.dropFirst()
    guard word.hasPrefix("-"), letters.count > 1, letters.contains("J"),
      letters.allSatisfy({ "JLORks".contains($0) })
    else { return [word] }
    return letters.map { "-\($0)" }
  }
}
