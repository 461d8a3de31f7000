import ArgumentParser
import ConfigurationFile
import FoundationEssentials

/// A command with defaults in the configuration file.
struct ConfigurableCommand {
  let name: String
  private let type: any ParsableCommand.Type
  /// Positional words that make a test parse of the options possible.
  private let placeholders: [String]

  /// Nil if there is no such command.
  init?(_ name: String) {
    self.name = name
    switch name {
    case "mount":
      type = MountCommand.self
      placeholders = ["SOURCE", "MOUNTPOINT"]
    case "get":
      type = GetCommand.self
      placeholders = ["http://localhost/file"]
    case "put":
      type = PutCommand.self
      placeholders = ["FILE", "http://localhost/file"]
    default: return nil
    }
  }

  /// Its options, as in its own `--help`.
  func catalog() throws(CommandFailure) -> OptionCatalog {
    do {
      let dump = try JSONDecoder().decode(Dump.self, from: Data(type._dumpHelp().utf8))
      return OptionCatalog(
        dump.command.arguments.filter { $0.kind != "positional" }.map { argument in
          OptionCatalog.Option(
            names: (argument.names ?? []).map(\.name), isFlag: argument.kind == "flag",
            isRepeating: argument.isRepeating, isPath: argument.completionKind?.isPath == true)
        })
    } catch {
      throw CommandFailure("the options of '\(name)' cannot be listed: \(error)")
    }
  }

  /// What is wrong with words of options; nil if they are valid.
  func complaint(about words: [String]) -> String? {
    do {
      _ = try type.parse(words + placeholders)
      return nil
    } catch {
      // The message lists the possible values below it: ` - trace`.
      return type.message(for: error).replacing("\n  - ", with: " ")
        .replacing("\n", with: " ")
    }
  }

  /// An option with a name similar to `key`; nil if there is none.
  func suggestion(for key: String) -> String? {
    guard let complaint = complaint(about: ["--\(key)"]),
      let start = complaint.firstRange(of: "mean '--")?.upperBound
    else { return nil }
    let name = complaint[start...].prefix { $0 != "'" }
    return name.isEmpty ? nil : String(name)
  }

  /// The part of `_dumpHelp()` of ArgumentParser that is needed here.
  private struct Dump: Decodable {
    struct Command: Decodable { let arguments: [Argument] }

    struct Argument: Decodable {
      struct Name: Decodable { let name: String }

      struct Completion: Decodable {
        struct Anything: Decodable {}

        let file: Anything?
        let directory: Anything?

        var isPath: Bool { file != nil || directory != nil }
      }

      let kind: String
      let isRepeating: Bool
      let names: [Name]?
      let completionKind: Completion?
    }

    let command: Command
  }
}
