import ArgumentParser

/// `httpfs cache`: shows and changes the contents of a cache directory.
struct CacheCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cache",
    abstract: "Show, verify and empty a cache directory.",
    discussion: """
      Name a file by the name that its URL has on a mount, or by the URL as 'httpfs cache ls' \
      shows it; both may contain the shell's wildcards * ? [...]. Or give the complete URL. All \
      commands except 'ls' need exclusive access to the directory: unmount first.
      """,
    subcommands: [
      CacheListCommand.self, CacheVerifyCommand.self, CacheEvictCommand.self,
      CacheClearCommand.self,
    ])
}
