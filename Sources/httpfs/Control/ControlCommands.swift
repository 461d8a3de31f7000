import ArgumentParser
import HTTPTransferCore
import MountControl

/// A subcommand that does to files of a mount what the verb of its name does in `.control`.
protocol FileVerbCommand: ParsableCommand {
  static var verb: FileVerb { get }
  var files: NamedFiles { get }
}

/// The arguments of those subcommands.
struct NamedFiles: ParsableArguments {
  @Argument(help: "Where the list is mounted.", completion: .directory)
  var mountpoint: String

  @Argument(
    help: "Files, by their paths below the mount point or as a whole; * ? [...] as in the shell.",
    completion: .file())
  var names: [String] = []
}

extension FileVerbCommand {
  func validate() throws {
    if files.names.isEmpty, !Self.verb.mayLackNames {
      throw ValidationError("Name at least one file; '*' stands for all of them.")
    }
  }

  func run() throws {
    try reportingFailure {
      try ControlledMount(at: files.mountpoint).perform(Self.verb, files.names)
    }
  }
}

struct PrefetchCommand: FileVerbCommand {
  static let verb = FileVerb.prefetch
  static let configuration = CommandConfiguration(
    commandName: "prefetch", abstract: "Have a mount fetch whole files in the background.",
    discussion: "Returns at once; 'httpfs status' shows how far it is. Reads come first.")
  @OptionGroup var files: NamedFiles
}

struct CancelCommand: FileVerbCommand {
  static let verb = FileVerb.cancel
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "End the prefetching of files.",
    discussion: "What has been fetched stays in the cache.")
  @OptionGroup var files: NamedFiles
}

struct PauseCommand: FileVerbCommand {
  static let verb = FileVerb.pause
  static let configuration = CommandConfiguration(
    commandName: "pause", abstract: "Fetch only what reads of files wait for.",
    discussion: "All files of the mount where none is named.")
  @OptionGroup var files: NamedFiles
}

struct ResumeCommand: FileVerbCommand {
  static let verb = FileVerb.resume
  static let configuration = CommandConfiguration(
    commandName: "resume", abstract: "Let read-ahead and prefetching go on.",
    discussion: "Of all files of the mount where none is named.")
  @OptionGroup var files: NamedFiles
}

struct EvictCommand: FileVerbCommand {
  static let verb = FileVerb.evict
  static let configuration = CommandConfiguration(
    commandName: "evict", abstract: "Remove the cached bytes of files of a mount.",
    discussion: """
      Nothing is removed if one of the files is open, being prefetched or pinned. See 'httpfs cache \
      evict' for a cache that no mount uses.
      """)
  @OptionGroup var files: NamedFiles
}

struct PinCommand: FileVerbCommand {
  static let verb = FileVerb.pin
  static let configuration = CommandConfiguration(
    commandName: "pin", abstract: "Keep the cached bytes of files, however full the cache is.",
    discussion: "Holds for later mounts, too. Fetches nothing by itself: see 'httpfs prefetch'.")
  @OptionGroup var files: NamedFiles
}

struct UnpinCommand: FileVerbCommand {
  static let verb = FileVerb.unpin
  static let configuration = CommandConfiguration(
    commandName: "unpin", abstract: "Let the cached bytes of files be evicted again.")
  @OptionGroup var files: NamedFiles
}

struct VerifyCommand: FileVerbCommand {
  static let verb = FileVerb.verify
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Compare the cached bytes of files with their hashes.",
    discussion: """
      Returns at once. What is damaged is fetched again by the next read; 'httpfs status' counts it. \
      See 'httpfs cache verify' for a cache that no mount uses.
      """)
  @OptionGroup var files: NamedFiles
}

struct RefreshCommand: FileVerbCommand {
  static let verb = FileVerb.refresh
  static let configuration = CommandConfiguration(
    commandName: "refresh",
    abstract: "Ask the servers about files anew, at the next open; or read the list again.",
    discussion: "Without names, the mount reads its list again, as at SIGHUP.")
  @OptionGroup var files: NamedFiles
}

struct ConnectionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "connections", abstract: "Set how many connections a mount uses per file.")

  @Argument(help: "Where the list is mounted.", completion: .directory)
  var mountpoint: String

  @Argument(help: "A number from 1 to 64, or 'auto' for the best that each file finds.")
  var count: String

  func validate() throws {
    if ControlCommand.connections(count) == nil {
      throw ValidationError("'\(count)' is neither a number from 1 to 64 nor 'auto'.")
    }
  }

  func run() throws {
    try reportingFailure {
      try ControlledMount(at: mountpoint).write("connections \(count)\n")
    }
  }
}

struct RateLimitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rate-limit", abstract: "Bound the bytes per second that a mount fetches.")

  @Argument(help: "Where the list is mounted.", completion: .directory)
  var mountpoint: String

  @Argument(help: "Bytes per second; K, M or G may follow; 0 for no limit.")
  var rate: String

  @Argument(
    help: "The files each of which gets so much, named as for 'pause'; all together without.",
    completion: .file())
  var names: [String] = []

  func validate() throws {
    if bytesPerSecond(ofText: rate) == nil {
      throw ValidationError("'\(rate)' is no number of bytes, as 500K or 10M.")
    }
  }

  func run() throws {
    try reportingFailure {
      try ControlledMount(at: mountpoint).perform("rate-limit \(rate)", names)
    }
  }
}
