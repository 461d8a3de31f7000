import Foundation

/// The description of a command by `httpfs --experimental-dump-help`: the content of `--help` as
/// JSON.
struct CommandHelp: Decodable {
  struct Argument: Decodable {
    struct Name: Decodable {
      let kind: String
      let name: String

      /// The name with its dashes, as the user writes it.
      var text: String { (kind == "long" ? "--" : "-") + name }
    }

    let kind: String
    let shouldDisplay: Bool
    let isRepeating: Bool
    let names: [Name]?
    let valueName: String?
  }

  let commandName: String
  let shouldDisplay: Bool?
  let arguments: [Argument]?
  let subcommands: [CommandHelp]?

  /// The whole command tree of the built program.
  static func ofHTTPFS() throws -> CommandHelp {
    struct Dump: Decodable { let command: CommandHelp }
    let text = try output(of: [try Products.httpfs, "--experimental-dump-help"])
    return try JSONDecoder().decode(Dump.self, from: Data(text.utf8)).command
  }

  /// The visible subcommands, including nested ones, by their names: `cache ls`.
  func displayedSubcommands(below path: String = "") -> [String: CommandHelp] {
    var all: [String: CommandHelp] = [:]
    for command in subcommands ?? [] where command.shouldDisplay != false {
      let name = path.isEmpty ? command.commandName : "\(path) \(command.commandName)"
      all[name] = command
      all.merge(command.displayedSubcommands(below: name)) { first, _ in first }
    }
    return all
  }

  /// The names of the options' values, by the options' names with dashes; nil for a flag.
  var options: [String: String?] {
    var options: [String: String?] = [:]
    for argument in arguments ?? [] where argument.shouldDisplay && argument.kind != "positional" {
      for name in argument.names ?? [] {
        options[name.text] = .some(argument.kind == "option" ? argument.valueName : nil)
      }
    }
    return options
  }

  /// The names of the positional arguments, in the singular if they can be repeated.
  var positionals: [String] {
    (arguments ?? []).filter { $0.kind == "positional" && $0.shouldDisplay }.flatMap { argument in
      let name = argument.valueName ?? ""
      guard argument.isRepeating, name.hasSuffix("s") else {
        return name.split(separator: " ").map(String.init)
      }
      return [String(name.dropLast())]
    }
  }
}
