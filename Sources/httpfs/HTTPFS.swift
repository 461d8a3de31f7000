import ArgumentParser

/// The command: `httpfs mount urls.txt /mnt/remote` and the other subcommands.
///
/// Exit codes of every subcommand: 0 success, 1 failure, 64 bad usage (`EX_USAGE`). `get` and `put`
/// also use 73: a file already exists (`EX_CANTCREAT`).
struct HTTPFS: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "httpfs",
    abstract: "Mount URLs as local files; download and upload with acceleration.",
    version: "0.2.0",
    subcommands: [
      MountCommand.self, UnmountCommand.self, MountsCommand.self, StatusCommand.self,
      ListCommand.self,
      PrefetchCommand.self, CancelCommand.self, PauseCommand.self, ResumeCommand.self,
      EvictCommand.self, PinCommand.self, UnpinCommand.self, VerifyCommand.self,
      RefreshCommand.self, ConnectionsCommand.self, RateLimitCommand.self, CacheCommand.self,
      DoctorCommand.self, GetCommand.self, PutCommand.self, ReplayCommand.self,
      WatchdogCommand.self,
    ])
}
