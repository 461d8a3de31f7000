/// The options of a command, with the properties that a configuration file needs.
package struct OptionCatalog: Sendable {
  /// An option with all its names.
  package struct Option: Sendable {
    /// Without dashes: `H`, `header`.
    package let names: [String]
    /// Whether the option takes no value.
    package let isFlag: Bool
    package let isRepeating: Bool
    /// Whether its value names a file or a directory.
    package let isPath: Bool

    package init(names: [String], isFlag: Bool, isRepeating: Bool, isPath: Bool) {
      self.names = names
      self.isFlag = isFlag
      self.isRepeating = isRepeating
      self.isPath = isPath
    }
  }

  private var options: [String: Option] = [:]

  /// Options that select the source of settings, or that end the command.
  private static let withoutKey: Set<String> = ["config", "no-config", "help", "version"]

  package init(_ options: [Option]) {
    for option in options { for name in option.names { self.options[name] = option } }
  }

  /// Converts settings to words of a command line, in their order.
  ///
  /// - Parameters:
  ///   - settings: the keys of one command.
  ///   - paths: resolves relative paths.
  /// - Returns: the words of each setting, none for a flag that is not set.
  /// - Throws: ``ConfigurationError`` if no option has the key or accepts the value.
  package func words(
    for settings: [ConfigurationFile.Setting], resolving paths: ConfiguredPaths
  ) throws(ConfigurationError) -> [(setting: ConfigurationFile.Setting, words: [String])] {
    var all: [(setting: ConfigurationFile.Setting, words: [String])] = []
    for setting in settings {
      all.append((setting: setting, words: try words(for: setting, paths)))
    }
    return all
  }

  private func words(
    for setting: ConfigurationFile.Setting, _ paths: ConfiguredPaths
  ) throws(ConfigurationError) -> [String] {
    let key = setting.key
    guard key.count > 1, !Self.withoutKey.contains(key), let option = options[key] else {
      throw ConfigurationError("unknown key '\(key)'", line: setting.line)
    }
    func word(_ text: String) -> String {
      "--\(key)=\(option.isPath ? paths.resolved(text) : text)"
    }
    switch setting.value {
    case .boolean(let isSet):
      guard option.isFlag else {
        throw ConfigurationError("'\(key)' takes a value, not true or false", line: setting.line)
      }
      if isSet { return ["--\(key)"] }
      return opposite(of: key).map { ["--\($0)"] } ?? []
    case .text, .list:
      guard !option.isFlag else {
        throw ConfigurationError("'\(key)' is true or false", line: setting.line)
      }
    }
    switch setting.value {
    case .text(let text): return [word(text)]
    case .list(let texts):
      guard option.isRepeating else {
        throw ConfigurationError("'\(key)' takes one value, not a list", line: setting.line)
      }
      return texts.map(word)
    case .boolean: return []
    }
  }

  /// The flag that undoes a flag: `no-resume` for `resume`, and vice versa.
  private func opposite(of key: String) -> String? {
    let name = key.hasPrefix("no-") ? String(key.dropFirst(3)) : "no-\(key)"
    return options[name]?.isFlag == true ? name : nil
  }

  /// Splits a command line, without the command, into options and positional words.
  ///
  /// - Returns: the options with their values, and the positional words.
  package func split(_ arguments: [String]) -> (options: [String], positionals: [String]) {
    var named: [String] = []
    var positionals: [String] = []
    var rest = arguments[...]
    while let word = rest.popFirst() {
      if word == "--" {
        positionals += rest
        break
      }
      guard word.hasPrefix("-"), word.count > 1 else {
        positionals.append(word)
        continue
      }
      named.append(word)
      let name = String(word.drop { $0 == "-" })
      if let option = options[name], !option.isFlag, let value = rest.popFirst() {
        named.append(value)
      }
    }
    return (named, positionals)
  }
}

/// Resolves the paths in a configuration file.
package struct ConfiguredPaths: Sendable {
  /// The file's directory, absolute.
  private let directory: String
  /// Nil if unknown.
  private let home: String?

  package init(directory: String, home: String?) {
    self.directory = directory
    self.home = home
  }

  /// Resolves `text`: `~/x` is below the home directory, and `x` is beside the file.
  ///
  /// A URL, and `-` for standard input or output, stay as they are.
  package func resolved(_ text: String) -> String {
    if text.isEmpty || text == "-" || text.hasPrefix("/") || text.contains("://") { return text }
    if let home {
      if text == "~" { return home }
      if text.hasPrefix("~/") { return home + text.dropFirst() }
    }
    return directory == "/" ? "/\(text)" : "\(directory)/\(text)"
  }
}
