import Glibc
import Logging
import RemoteFileSystem
import SourceList

/// Reads the list of a mount again, on SIGHUP or on the command `refresh`.
struct ListReload: Sendable {
  /// The list's file as an absolute path; nil if the source cannot be read twice.
  private let path: String?
  private let tree: Bool
  /// The settings of the options, as at the start.
  private let access: Access

  init(source: String, tree: Bool, access: Access) {
    self.tree = tree
    self.access = access
    guard source != "-", !source.contains("://"), let resolved = realpath(source, nil) else {
      path = nil
      return
    }
    defer { free(resolved) }
    // The list may be replaced by a rename, so keep its name and do not resolve it now.
    path = source.hasPrefix("/") ? source : String(cString: resolved)
  }

  /// Replaces the mounted files by the list's current ones; a list with an error changes nothing.
  ///
  /// - Returns: the result in a few words: `3 files`, or `list not reloaded, …`.
  func perform(on fileSystem: FileSystem, logger: Logger) -> String {
    guard let path else {
      logger.warning("not reloaded: the source is no file, there is nothing to read again")
      return "list not reloaded, it is no file; old list"
    }
    do {
      let list = try loadSource(path, tree: tree, allowsListings: true)
      for warning in list.warnings { logger.warning("\(warning)") }
      let sources = mountSources(of: list, access)
      fileSystem.replaceTree(sources: sources)
      logger.notice("list reloaded", metadata: ["files": "\(list.entries.count)"])
      return sources.summary
    } catch {
      logger.error("the list was not reloaded", metadata: ["reason": "\(error)"])
      return "list not reloaded, it has errors (see the log); old list"
    }
  }
}
