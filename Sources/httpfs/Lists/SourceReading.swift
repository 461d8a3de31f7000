import Glibc
import HTTPTransferCore
import LinuxSystem
import Logging
import SourceList
import TextFormat

/// Reads and parses the SOURCE of a command: a list file, `-` for standard input, or one URL.
///
/// - Parameters:
///   - source: the argument.
///   - tree: whether names keep host and path.
///   - rules: the paths that the list may give.
///   - listings: which URLs that end in `/` are directory listings.
///   - naming: whether the caller asks servers for names.
///   - end: when a pipe or terminal that is the source must have ended; nil for no limit.
/// - Returns: the list.
/// - Throws: ``CommandFailure`` with all errors, one line each.
func loadSource(
  _ source: String, tree: Bool, rules: PathRules = .mount, listings: ListingRule = .never,
  naming: NamingRule = .byURL, until end: ContinuousClock.Instant? = nil
) throws(CommandFailure) -> SourceList {
  do {
    if source.contains("://") {
      return try SourceListReader.single(
        url: source, tree: tree, listings: listings, naming: naming)
    }
    let isStandardInput = source == "-"
    let bytes: [UInt8]
    do {
      bytes =
        try isStandardInput
        ? StreamCalls.contents(of: STDIN_FILENO, until: end)
        : StreamCalls.contents(ofFile: source, until: end)
    } catch {
      if error.rawValue == ETIMEDOUT, end != nil { throw CommandFailure.overTime }
      let name = isStandardInput ? "standard input" : "list '\(Redaction.shown(source))'"
      let action = "cannot \(error.rawValue == EISDIR ? "read" : "open") \(name)"
      guard [ENOENT, ENOTDIR].contains(error.rawValue), looksLikeURL(source) else {
        throw CommandFailure(action, error)
      }
      throw CommandFailure(
        "\(action): \(error); if it is a URL, write http:// or https:// before it")
    }
    return try SourceListReader.parse(
      bytes, sourceName: isStandardInput ? "standard input" : Redaction.shown(source), tree: tree,
      rules: rules, listings: listings, naming: naming)
  } catch let failure as CommandFailure {
    throw failure
  } catch let error as SourceListError {
    throw CommandFailure(messages: error.description.split(separator: "\n").map(String.init))
  } catch {
    throw CommandFailure("\(error)")
  }
}

/// Whether a source without a scheme begins like a host: `www.example.org/a.zip`.
private func looksLikeURL(_ source: String) -> Bool {
  let parts = source.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
  guard parts.count == 2, let host = parts.first, let first = host.first else { return false }
  return (first.isLetter || first.isNumber) && host.dropLast().contains { ".:".contains($0) }
}

/// Reads and parses all sources of a mount, in their order.
///
/// Among several sources, a listing becomes a directory with the last name of its URL.
///
/// - Throws: ``CommandFailure`` with all errors of the first source that has some, or if two
///   sources give the same name.
func loadSources(_ sources: [String], tree: Bool) throws(CommandFailure) -> SourceList {
  guard sources.count > 1 else {
    return try loadSource(sources.first ?? "-", tree: tree, listings: .always)
  }
  var entries: [SourceEntry] = []
  var warnings: [SourceDiagnostic] = []
  /// The source that gives each name, with the URL, and each directory.
  var owners: [PathKey: (source: String, url: RemoteURL)] = [:]
  var directories: [PathKey: String] = [:]
  for source in sources {
    let list: SourceList
    if source.contains("://") {
      do throws(SourceListError) {
        list = try SourceListReader.parse(
          Array(source.utf8), sourceName: "URL", tree: tree, listings: .always)
      } catch {
        throw CommandFailure(messages: error.description.split(separator: "\n").map(String.init))
      }
    } else {
      list = try loadSource(source, tree: tree, listings: .always)
    }
    let shown = Redaction.shown(source)
    for entry in list.entries {
      let key = PathKey(entry.path)
      if let other = owners[key]?.source ?? directories[key] {
        let helpsTree = !tree && owners[key]?.url.hasOtherTreeName(than: entry.url) != false
        throw CommandFailure(
          "'\(escapingControls(entry.path))' is a name in both \(other) and \(shown); "
            + (helpsTree
              ? "use --tree, or out= in a list"
              : "write the URLs into a list, with an indented line out=NAME below one of them"))
      }
      owners[key] = (shown, entry.url)
      var parts = entry.path.split(separator: "/").dropLast()
      while !parts.isEmpty {
        let directory = PathKey(parts.joined(separator: "/"))
        if let other = owners[directory]?.source {
          throw CommandFailure(
            "'\(escapingControls(directory.text))' of \(other) is a directory of \(shown); use "
              + "--tree, or out= in a list")
        }
        directories[directory] = shown
        parts = parts.dropLast()
      }
    }
    entries += list.entries
    warnings += list.warnings
  }
  return SourceList(entries: entries, warnings: warnings)
}

/// Prints the warnings of a list to standard error.
func printWarnings(of list: SourceList) {
  for warning in list.warnings {
    printToStandardError(Journal.marked("httpfs: warning: \(warning)", as: .warning))
  }
}
