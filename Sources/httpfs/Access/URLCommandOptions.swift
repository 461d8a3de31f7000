import ArgumentParser

/// Where `httpfs mount` and `get` ask for files that their listed URLs do not lead to.
struct URLCommandOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Ask for each file at the URL that a shell command prints. It finds the listed URL in $HTTPFS_URL and $1, the file's name in $HTTPFS_NAME, and is run again when its URL expires or is refused.",
      valueName: "command"))
  var urlCommand: String?

  func validate() throws {
    if let urlCommand, urlCommand.allSatisfy(\.isWhitespace) {
      throw ValidationError("--url-command needs a command")
    }
  }
}
