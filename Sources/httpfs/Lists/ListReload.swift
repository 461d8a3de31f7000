import CLinux
import Glibc
import Logging
import RemoteFileSystem
import SourceList

/// Reads the list of a mount again, on SIGHUP or on the command `refresh`.
struct ListReload: Sendable {
  /// The sources, lists as absolute paths; nil unless all lists are files that can be read twice.
  private let sources: [String]?
  private let tree: Bool
  /// The settings of the options, as at the start.
  private let access: Access

  init(sources: [String], tree: Bool, access: Access) {
    self.tree = tree
    self.access = access
    let lists = sources.filter { !$0.contains("://") }
    guard !lists.isEmpty, lists.allSatisfy(Self.isRegularFile) else {
      self.sources = nil
      return
    }
    self.sources = sources.map { source in
      guard !source.contains("://"), !source.hasPrefix("/"), let resolved = realpath(source, nil)
      else { return source }
      defer { free(resolved) }
      // The list may be replaced by a rename, so keep its name and do not resolve it now.
      return String(cString: resolved)
    }
  }

  /// Whether there is a list that can be read again.
  var hasList: Bool { sources != nil }

  /// Replaces the mounted files by the list's current ones; a list with an error changes nothing.
  ///
  /// - Returns: the result in a few words, `3 files`.
  /// - Throws: ``Refusal``, which is in the log already.
  func perform(on fileSystem: FileSystem, logger: Logger) throws(Refusal) -> String {
    guard let sources else {
      logger.warning("list not reloaded: the source is not a file; keeping the old list")
      return "list not reloaded: the source is not a file"
    }
    do throws(CommandFailure) {
      // A pipe that has taken the place of a list would never end.
      for source in sources where !source.contains("://") && Self.isOther(source) {
        throw CommandFailure("the list '\(source)' is no regular file any more")
      }
      let list = try loadSources(sources, tree: tree)
      for warning in list.warnings { logger.warning("\(warning)") }
      let mounted = mountSources(of: list, access)
      fileSystem.replaceTree(sources: mounted)
      logger.notice("list reloaded", metadata: ["files": "\(list.entries.count)"])
      return mounted.summary
    } catch {
      logger.error("the list was not reloaded", metadata: ["reason": "\(error)"])
      throw Refusal(error)
    }
  }

  /// Whether `path` is a file that can be read twice; standard input and pipes cannot.
  private static func isRegularFile(_ path: String) -> Bool {
    path != "-" && type(of: path) == S_IFREG
  }

  /// Whether `path` exists and is no regular file.
  private static func isOther(_ path: String) -> Bool {
    type(of: path).map { $0 != S_IFREG } ?? false
  }

  private static func type(of path: String) -> mode_t? {
    var attributes = stat()
    return stat(path, &attributes) == 0 ? attributes.st_mode & S_IFMT : nil
  }

  /// Why a list was not read again, in one line: a list may have any number of errors.
  struct Refusal: Error {
    let reason: String

    fileprivate init(_ failure: CommandFailure) {
      let shown = failure.messages.prefix(3)
      let more = failure.messages.count - shown.count
      reason = shown.joined(separator: "; ") + (more > 0 ? "; and \(more) more" : "")
    }
  }
}
