import ArgumentParser
import RangeCache

/// The common option of all subcommands of `httpfs cache`, and the directory that it names.
struct CacheOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The cache directory (default: $XDG_CACHE_HOME/httpfs or ~/.cache/httpfs).",
      valueName: "dir"), completion: .directory)
  var cacheDir: String?

  /// Opens the directory read-only, also while another process uses it.
  func inventory() throws(CommandFailure) -> CacheInventory {
    guard let path = cacheDir ?? defaultCacheDirectory() else {
      throw CommandFailure("no home directory for the cache; name one with --cache-dir")
    }
    return try failing { () throws(CacheError) in try CacheInventory(path: path) }
  }

  /// Opens the directory exclusively; never creates one.
  func held() throws(CommandFailure) -> (directory: CacheDirectory, inventory: CacheInventory) {
    let inventory = try inventory()
    let directory = try failing { () throws(CacheError) in
      try CacheDirectory(path: inventory.path)
    }
    return (directory, inventory)
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
