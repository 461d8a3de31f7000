import ArgumentParser

/// Which configuration file a command takes its settings from.
///
/// ``ConfiguredArguments`` looks for these options before the command line is parsed; here they are
/// declared, so that they are known.
struct ConfigurationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Read settings from this file (default: $XDG_CONFIG_HOME/httpfs/config.toml or ~/.config/httpfs/config.toml).",
      valueName: "file"), completion: .file())
  var config: String?

  @Flag(help: "Read no configuration file.")
  var noConfig = false
}
