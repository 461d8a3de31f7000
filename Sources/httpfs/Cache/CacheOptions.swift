import ArgumentParser
import RangeCache
import TextFormat

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

  /// Runs `body` for each cache.
  ///
  /// A failure in one of several caches is reported at the end, and the others are still handled.
  func inspectEach(_ body: (CacheInventory) throws -> Void) throws {
    var failures: [String] = []
    var code: ExitCode?
    for path in try paths() {
      do {
        try body(failing { () throws(CacheError) in try CacheInventory(path: path) })
      } catch let failure as CommandFailure {
        failures += failure.messages
      } catch let exit as ExitCode {
        code = exit
      }
    }
    if !failures.isEmpty { throw CommandFailure(messages: failures) }
    if let code { throw code }
  }

  /// Runs `body` for each cache that has a file which `patterns` select, or for each if there are
  /// none, opened exclusively; never creates one.
  func forEachHeld(
    with patterns: [CachePattern] = [],
    _ body: (_ directory: CacheDirectory, _ inventory: CacheInventory) throws -> Void
  ) throws {
    try inspectEach { inventory in
      if !patterns.isEmpty, try CachedFile.selected(by: patterns, in: inventory).isEmpty { return }
      let directory = try failing { () throws(CacheError) in
        try openCacheDirectory(inventory.path)
      }
      try body(directory, inventory)
    }
  }
}

/// Runs `body`; an error of the cache already contains the path and advice.
func failing<Value>(
  _ body: () throws(CacheError) -> Value
) throws(CommandFailure) -> Value {
  do throws(CacheError) {
    return try body()
  } catch {
    // It may contain what another process has written.
    throw CommandFailure(escapingControls("\(error)"))
  }
}
