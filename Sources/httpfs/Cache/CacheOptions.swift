import ArgumentParser
import RangeCache

/// The common option of all subcommands of `httpfs cache`, and the directory that it names.
struct CacheOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The cache directory (default: all below $XDG_CACHE_HOME/httpfs or ~/.cache/httpfs).",
      valueName: "dir"), completion: .directory)
  var cacheDir: String?

  /// The caches that the command is about: the named one, or all of this user.
  func paths() throws(CommandFailure) -> [String] {
    if let cacheDir { return [cacheDir] }
    let existing = existingCacheDirectories()
    if !existing.isEmpty { return existing }
    guard let path = defaultCacheDirectory() else {
      throw CommandFailure("no home directory for the cache; name one with --cache-dir")
    }
    return [path]
  }

  /// Runs `body` for each cache, opened exclusively; never creates one.
  ///
  /// A failure in one of several caches is reported, and the others are still handled.
  func forEachHeld(
    _ body: (_ directory: CacheDirectory, _ inventory: CacheInventory) throws -> Void
  ) throws {
    let paths = try paths()
    var failures: [String] = []
    var code: ExitCode?
    for path in paths {
      do {
        let inventory = try failing { () throws(CacheError) in try CacheInventory(path: path) }
        let directory = try failing { () throws(CacheError) in
          try CacheDirectory(path: inventory.path)
        }
        try body(directory, inventory)
      } catch let failure as CommandFailure {
        failures += failure.messages
      } catch let exit as ExitCode {
        code = exit
      }
    }
    if !failures.isEmpty { throw CommandFailure(messages: failures) }
    if let code { throw code }
  }
}

/// Runs `body`; an error of the cache already contains the path and advice.
func failing<Value>(
  _ body: () throws(CacheError) -> Value
) throws(CommandFailure) -> Value {
  do throws(CacheError) {
    return try body()
  } catch {
    throw CommandFailure("\(error)")
  }
}
