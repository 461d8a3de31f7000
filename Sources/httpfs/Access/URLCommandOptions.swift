import ArgumentParser

/// Lets `httpfs mount` and `get` request files at other URLs than the listed ones.
struct URLCommandOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Request each file at the URL that a shell command prints. The command gets the listed URL in $HTTPFS_URL and $1, and the file's name in $HTTPFS_NAME. It runs again when its URL expires or is refused.",
      valueName: "command"))
  var urlCommand: String?

  func validate() throws {
    if let urlCommand, urlCommand.allSatisfy(\.isWhitespace) {
      throw ValidationError("--url-command needs a command")
    }
  }
}
