import ArgumentParser

/// The options that select a command's configuration file.
///
/// ``ConfiguredArguments`` looks for these options before the command line is parsed. They are
/// declared here so that the parser accepts them.
struct ConfigurationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Read settings from this file (default: $XDG_CONFIG_HOME/httpfs/config.toml or ~/.config/httpfs/config.toml).",
      valueName: "file"), completion: .file())
  var config: String?

  @Flag(help: "Read no configuration file.")
  var noConfig = false
}
