import ArgumentParser
import Glibc
import HTTPTransferCore
import LinuxSystem
import MountControl
import TextFormat

/// A subcommand that applies the verb of its name in `.control` to files of a mount.
protocol FileVerbCommand: ParsableCommand {
  static var verb: FileVerb { get }
  var files: NamedFiles { get }
}

/// The arguments of those subcommands.
struct NamedFiles: ParsableArguments {
  @Argument(
    help: """
      The mount point, which may be left out if there is only one mount or if the files are given \
      by their complete paths; then files, as paths below it or complete paths; * ? [...] as in \
      the shell.
      """,
    completion: .file())
  var paths: [String] = []

  /// The mount, and the files that are named.
  func resolved() throws(CommandFailure) -> (mountpoint: String, names: [String]) {
    try Self.resolve(paths)
  }

  /// Splits `paths` into the mount point and names of files.
  ///
  /// The first path may be the mount point. Otherwise either all paths lead into one mount, or
  /// there is only one mount.
  static func resolve(
    _ paths: [String]
  ) throws(CommandFailure) -> (mountpoint: String, names: [String]) {
    guard let first = paths.first else { return (try mountPointOrOnlyOne(nil), []) }
    if (try? httpfsMountUntouched(at: first)) != nil { return (first, Array(paths.dropFirst())) }
    if let (mount, _) = httpfsMount(containing: first) {
      var names: [String] = []
      for path in paths {
        guard let found = httpfsMount(containing: path), found.mount == mount else {
          throw CommandFailure(
            "'\(escapingControls(path))' is not below '\(mount.mountpoint)' as the first file is; "
              + "use one command for each mount")
        }
        names.append(found.name)
      }
      return (mount.mountpoint, names)
    }
    // A path that leads somewhere else, such as a directory without a mount.
    if first.hasPrefix("/") || first.hasPrefix(".") || access(first, F_OK) == 0 {
      _ = try httpfsMount(at: first)
    }
    return (try mountPointOrOnlyOne(nil), paths)
  }
}

extension FileVerbCommand {
  func run() throws {
    try reportingFailure {
      let (mountpoint, names) = try files.resolved()
      if names.isEmpty, !Self.verb.mayLackNames {
        throw ValidationError("Name at least one file; '*' stands for all of them.")
      }
      let mount = try ControlledMount(at: mountpoint)
      if names.isEmpty, Self.verb == .refresh { return try mount.reloadList() }
      try mount.perform(Self.verb, names)
    }
  }
}

struct PrefetchCommand: FileVerbCommand {
  static let verb = FileVerb.prefetch
  static let configuration = CommandConfiguration(
    commandName: "prefetch", abstract: "Fetch whole files of a mount in the background.",
    discussion: "Returns at once; 'httpfs status' shows the progress. Reads take precedence.")
  @OptionGroup var files: NamedFiles
}

struct CancelCommand: FileVerbCommand {
  static let verb = FileVerb.cancel
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Stop prefetching files.",
    discussion: "Bytes that were fetched stay in the cache.")
  @OptionGroup var files: NamedFiles
}

struct PauseCommand: FileVerbCommand {
  static let verb = FileVerb.pause
  static let configuration = CommandConfiguration(
    commandName: "pause", abstract: "Fetch only what reads of files wait for.",
    discussion: "Pauses all files of the mount if none is named.")
  @OptionGroup var files: NamedFiles
}

struct ResumeCommand: FileVerbCommand {
  static let verb = FileVerb.resume
  static let configuration = CommandConfiguration(
    commandName: "resume", abstract: "Resume read-ahead and prefetching of files.",
    discussion: "Resumes all files of the mount if none is named.")
  @OptionGroup var files: NamedFiles
}

struct EvictCommand: FileVerbCommand {
  static let verb = FileVerb.evict
  static let configuration = CommandConfiguration(
    commandName: "evict", abstract: "Remove the cached bytes of files of a mount.",
    discussion: """
      Removes nothing if one of the files is open, being prefetched or pinned. For a cache that no \
      mount uses, see 'httpfs cache evict'.
      """)
  @OptionGroup var files: NamedFiles
}

struct PinCommand: FileVerbCommand {
  static let verb = FileVerb.pin
  static let configuration = CommandConfiguration(
    commandName: "pin", abstract: "Keep the cached bytes of files, however full the cache is.",
    discussion: "Applies to later mounts too. Fetches nothing by itself: see 'httpfs prefetch'.")
  @OptionGroup var files: NamedFiles
}

struct UnpinCommand: FileVerbCommand {
  static let verb = FileVerb.unpin
  static let configuration = CommandConfiguration(
    commandName: "unpin", abstract: "Allow the cached bytes of files to be evicted again.")
  @OptionGroup var files: NamedFiles
}

struct VerifyCommand: FileVerbCommand {
  static let verb = FileVerb.verify
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Compare the cached bytes of files with their hashes.",
    discussion: """
      Returns at once. The next read fetches damaged bytes again; 'httpfs status' counts them. For \
      a cache that no mount uses, see 'httpfs cache verify'.
      """)
  @OptionGroup var files: NamedFiles
}

struct RefreshCommand: FileVerbCommand {
  static let verb = FileVerb.refresh
  static let configuration = CommandConfiguration(
    commandName: "refresh",
    abstract: "Ask the servers about files again at the next open, or read the list again.",
    discussion: """
      Without names, the mount reads its list again, as after SIGHUP, and the command waits for \
      the result.
      """)
  @OptionGroup var files: NamedFiles
}

struct ConnectionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "connections", abstract: "Set how many connections a mount uses per file.")

  @Argument(help: "The mount point.", completion: .directory)
  var mountpoint: String

  @Argument(help: "A number from 1 to 64, or 'auto' to let each file find its best number.")
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
    commandName: "rate-limit", abstract: "Limit the bytes per second that a mount fetches.")

  @Argument(help: "The mount point.", completion: .directory)
  var mountpoint: String

  @Argument(help: "Bytes per second; K, M or G may follow; 0 for no limit.")
  var rate: String

  @Argument(
    help: "Files, named as for 'pause', that each get this limit (default: all files together).",
    completion: .file())
  var names: [String] = []

  func validate() throws {
    if bytesPerSecond(ofText: rate) == nil {
      throw ValidationError("'\(rate)' is not a byte count; write, for example, 500K or 10M.")
    }
  }

  func run() throws {
    try reportingFailure {
      try ControlledMount(at: mountpoint).perform("rate-limit \(rate)", names)
    }
  }
}
