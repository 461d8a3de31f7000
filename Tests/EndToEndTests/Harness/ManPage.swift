/// The commands and options in a man page in the mdoc language (mdoc(7)).
///
/// It knows only the subset of the language that docs/man/httpfs.1 uses for them: `.Ss COMMANDS`
/// begins the section of one or more commands, `.Sh TITLE` one of common options, `.It Fl -option
/// Ar value` is an option, `.D1 Nm Cm COMMAND … Ar argument` is the syntax of a command, and `.Sx
/// TITLE` is a reference.
struct ManPage {
  /// A part of the page, by its `.Ss` or `.Sh` line.
  struct Section {
    /// The names of the options' values, by the options' names with dashes; nil for a flag.
    var options: [String: String?] = [:]
    var references: [String] = []
  }

  private(set) var sections: [String: Section] = [:]
  /// The names of the positional arguments, by command.
  private(set) var arguments: [String: [String]] = [:]
  /// The title of the section that describes a command.
  private(set) var titles: [String: String] = [:]

  /// - Parameter text: the page's source.
  init(_ text: String) {
    var title = ""
    for line in text.split(separator: "\n") {
      let words = Self.words(line)
      switch words.first {
      case ".Sh", ".Ss":
        title = words.dropFirst().joined(separator: " ")
        sections[title] = Section()
      case ".Sx": sections[title]?.references.append(Self.reference(words))
      case ".It" where words.count > 2 && words[1] == "Fl": addOptions(words, in: title)
      case ".D1" where words.count > 3 && words[1] == "Nm": addCommand(words, in: title)
      default: continue
      }
    }
  }

  /// The options of a command: those of its section and of the sections that it refers to.
  func options(of command: String) -> [String: String?] {
    guard let title = titles[command], let section = sections[title] else { return [:] }
    var options = section.options
    for reference in section.references {
      options.merge(sections[reference]?.options ?? [:]) { own, _ in own }
    }
    return options
  }

  /// `.It Fl o , Fl -output Ar path`.
  private mutating func addOptions(_ words: [String], in title: String) {
    let value = words.firstIndex(of: "Ar").map { words[$0 + 1] }
    for (flag, name) in zip(words, words.dropFirst()) where flag == "Fl" {
      sections[title]?.options["-" + name] = .some(value)
    }
  }

  /// `.D1 Nm Cm cache evict Oo options Oc Op Ar name ...`.
  private mutating func addCommand(_ words: [String], in title: String) {
    let macros: Set<String> = ["Oo", "Op", "Ar"]
    let name = words.dropFirst(3).prefix { !macros.contains($0) }.joined(separator: " ")
    titles[name] = title
    var names: [String] = []
    var isArgument = false
    for word in words.dropFirst(3) {
      if word == "Ar" {
        isArgument = true
      } else if ["Op", "Oo"].contains(word) {
        isArgument = false
      } else if isArgument, word != "..." {
        names.append(word)
      }
    }
    arguments[name] = names
  }

  /// `.Sx ACCESS OPTIONS .`; the final point is punctuation.
  private static func reference(_ words: [String]) -> String {
    words.dropFirst().filter { ![".", ",", ")"].contains($0) }.joined(separator: " ")
  }

  /// The words of a line; double quotes enclose one word.
  private static func words(_ line: Substring) -> [String] {
    var words: [String] = []
    var word = ""
    var isQuoted = false
    for character in line {
      if character == "\"" {
        isQuoted.toggle()
      } else if character == " ", !isQuoted {
        if !word.isEmpty { words.append(word) }
        word = ""
      } else {
        word.append(character)
      }
    }
    return word.isEmpty ? words : words + [word]
  }
}
