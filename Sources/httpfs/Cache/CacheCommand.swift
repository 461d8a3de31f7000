import ArgumentParser

/// `httpfs cache`: what a cache directory holds, and what may be done with it.
struct CacheCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cache",
    abstract: "Show, verify and empty a cache directory.",
    discussion: """
      Files are named by the name that their URL has on a mount, or by the URL as 'httpfs cache ls' \
      shows it, both with the shell's wildcards * ? [...]; or by the whole URL. Apart from 'ls', \
      these commands need the directory for themselves: unmount first.
      """,
    subcommands: [
      CacheListCommand.self, CacheVerifyCommand.self, CacheEvictCommand.self,
      CacheClearCommand.self,
    ])
}
