import ConfigurationFile
import Glibc
import TextFormat

/// A command line with the settings of the configuration file inserted after the command's name.
///
/// The user's own words follow and therefore win.
///
/// So each option is declared once, and the file can use all of them. Without a file, or for other
/// commands, the only work is to look for the file.
struct ConfiguredArguments {
  /// The words for the parser.
  let words: [String]

  /// - Parameters:
  ///   - arguments: the command line without the program's name, with short options separated from
  ///     their values.
  ///   - defaults: words that the file's settings override.
  /// - Throws: ``CommandFailure`` if the file cannot be used.
  init(_ arguments: [String], defaults: [String] = []) throws(CommandFailure) {
    guard let name = arguments.first, let command = ConfigurableCommand(name) else {
      words = arguments
      return
    }
    let own = Array(arguments.dropFirst())
    let choice = Self.choice(in: own)
    let mayNameSection = name == "mount" && own.contains { $0.hasPrefix("@") }
    if let path = choice.path ?? (choice.isRefused ? nil : ConfigurationSource.usualPath()) {
      let source = try ConfigurationSource(path: path, isNamed: choice.path != nil)
      let configuration = try ConfiguredCommand(command, from: source)
      words = try configuration.words(own, defaults: defaults)
      return
    }
    words = [name] + defaults + own
    // This is rare, and an option's value may also begin with an @.
    guard mayNameSection, !choice.isHelp else { return }
    let catalog = try command.catalog()
    if let section = catalog.split(own).positionals.first, section.hasPrefix("@") {
      throw CommandFailure(
        "'\(escapingControls(section))' is a section of the configuration file, and there is none"
          + (choice.isRefused
            ? " with --no-config"
            : ": it would be \(ConfigurationSource.candidates().joined(separator: " or "))"))
    }
  }

  /// The choice of the file on a command line.
  private static func choice(
    in arguments: [String]
  ) -> (path: String?, isRefused: Bool, isHelp: Bool) {
    var path: String?
    var isRefused = false
    var isHelp = false
    var rest = arguments[...]
    while let word = rest.popFirst(), word != "--" {
      switch word {
      case "--config": path = rest.popFirst()
      case "--no-config": isRefused = true
      case "-h", "--help", "--version": isHelp = true
      default:
        let prefix = "--config="
        if word.hasPrefix(prefix) { path = String(word.dropFirst(prefix.count)) }
      }
    }
    // A user who asks for help must get it, whatever the file contains.
    if isHelp || path?.isEmpty == true { return (nil, true, isHelp) }
    return (isRefused ? nil : path, isRefused, isHelp)
  }
}

/// The settings of a file for a command.
struct ConfiguredCommand {
  private let command: ConfigurableCommand
  private let source: ConfigurationSource
  private let catalog: OptionCatalog

  init(
    _ command: ConfigurableCommand, from source: ConfigurationSource
  ) throws(CommandFailure) {
    self.command = command
    self.source = source
    catalog = try command.catalog()
  }

  /// The complete command line.
  ///
  /// - Parameters:
  ///   - own: the user's words after the command's name.
  ///   - defaults: words before all others.
  /// - Returns: the words, the command's name first.
  /// - Throws: ``CommandFailure`` with file and line.
  func words(_ own: [String], defaults: [String] = []) throws(CommandFailure) -> [String] {
    let (options, positionals) = catalog.split(own)
    guard command.name == "mount", let first = positionals.first, first.hasPrefix("@") else {
      return try [command.name] + defaults + settings(of: nil) + own
    }
    return try reportingErrors { () throws(ConfigurationError) -> [String] in
      let mount = try source.file.mount(named: String(first.dropFirst()))
      return try words(for: mount, options, defaults, Array(positionals.dropFirst()))
    }
  }

  /// The command line of a named mount.
  private func words(
    for mount: ConfigurationFile.NamedMount, _ options: [String], _ defaults: [String],
    _ positionals: [String]
  ) throws(ConfigurationError) -> [String] {
    var places = positionals
    if places.isEmpty, let mountpoint = mount.mountpoint, case .text(let text) = mountpoint.value {
      places = [source.paths.resolved(text)]
    }
    guard !places.isEmpty else {
      throw ConfigurationError(
        "[mounts.\(mount.name)] has no mountpoint; add it, or name it after @\(mount.name)",
        line: mount.line)
    }
    guard case .text(let text) = mount.source.value else { return [] }
    let list = source.paths.resolved(text)
    try source.requirePrivacy(of: [list], from: mount.source)
    let named = Self.cacheDirectory(ofMount: mount.name).map { ["--cache-dir=\($0)"] } ?? []
    return try ["mount"] + named + defaults + settings(ofMount: mount) + options + ["--", list]
      + places
  }

  /// Two mounts cannot share a cache directory, so a named mount has its own.
  private static func cacheDirectory(ofMount name: String) -> String? {
    // As in the service template.
    if geteuid() == 0 { return "/var/cache/httpfs/\(name)" }
    return defaultCacheDirectory().map { "\($0)/mounts/\(name)" }
  }

  private func settings(
    of mount: ConfigurationFile.NamedMount?
  ) throws(CommandFailure) -> [String] {
    try reportingErrors { () throws(ConfigurationError) -> [String] in
      try settings(ofMount: mount)
    }
  }

  /// The words of the defaults and of a mount's own section, whose keys override them.
  private func settings(
    ofMount mount: ConfigurationFile.NamedMount?
  ) throws(ConfigurationError) -> [String] {
    let own = mount?.settings ?? []
    let defaults = (source.file.defaults[command.name] ?? []).filter { setting in
      !own.contains { $0.key == setting.key }
    }
    let settings = defaults + own
    let parts: [(setting: ConfigurationFile.Setting, words: [String])]
    do throws(ConfigurationError) {
      parts = try catalog.words(for: settings, resolving: source.paths)
    } catch {
      throw suggesting(error, among: settings)
    }
    for part in parts { try source.requirePrivacy(of: part.words, from: part.setting) }
    let words = parts.flatMap(\.words)
    guard let complaint = command.complaint(about: words) else { return words }
    // Find the setting at fault: the first one that causes the same complaint on its own.
    let culprit = parts.first { command.complaint(about: $0.words) == complaint }
    let section = mount.map { "[mounts.\($0.name)]" } ?? "[\(command.name)]"
    throw ConfigurationError(
      culprit == nil ? "\(section): \(complaint)" : complaint,
      line: culprit?.setting.line ?? mount?.line)
  }

  /// Adds the option that the user may have meant to the error.
  private func suggesting(
    _ error: ConfigurationError, among settings: [ConfigurationFile.Setting]
  ) -> ConfigurationError {
    guard error.message.hasPrefix("unknown key"),
      let setting = settings.first(where: { $0.line == error.line })
    else { return error }
    let advice =
      command.suggestion(for: setting.key).map { "did you mean '\($0)'?" }
      ?? "keys are the long options of 'httpfs \(command.name)', see 'httpfs help \(command.name)'"
    return ConfigurationError("\(error.message); \(advice)", line: error.line)
  }

  private func reportingErrors<Value>(
    _ body: () throws(ConfigurationError) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(ConfigurationError) {
      return try body()
    } catch {
      throw CommandFailure(escapingControls(error.description(inFile: source.path)))
    }
  }

  // MARK: Display text

  /// The command line of each section, without secrets; checks all sections.
  func summary() throws(CommandFailure) -> [String] {
    if command.name != "mount" {
      let settings = try settings(of: nil)
      return settings.isEmpty ? [] : [line([command.name] + settings)]
    }
    var lines: [String] = []
    let settings = try settings(of: nil)
    if !settings.isEmpty { lines.append(line(["mount"] + settings)) }
    for mount in source.file.mounts {
      // The command line may have to name the mount point.
      let place = mount.mountpoint == nil ? ["MOUNTPOINT"] : []
      let words = try words(["@\(mount.name)"] + place)
      lines.append("@\(mount.name) = " + line(words))
    }
    return lines
  }

  private func line(_ words: [String]) -> String {
    let shown = words.map { word in
      String(decoding: Redaction.hidingSecrets(in: Array(word.utf8), after: []), as: UTF8.self)
    }
    return escapingControls("httpfs " + shown.map(Self.quoted).joined(separator: " "))
  }

  /// Quotes a word for a shell.
  private static func quoted(_ word: String) -> String {
    let isPlain =
      !word.isEmpty
      && word.allSatisfy {
        $0.isASCII && ($0.isLetter || $0.isNumber || "-_./:=@%+,~".contains($0))
      }
    return isPlain ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
  }
}
