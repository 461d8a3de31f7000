import Glibc
import LinuxSystem
import Logging
import SourceList

/// Reads and parses the SOURCE of a command: a list file, `-` for standard input, or one URL.
///
/// - Parameters:
///   - source: the argument.
///   - tree: whether names keep host and path.
///   - rules: the paths that the list may give.
///   - allowsListings: whether a URL that ends in `/` is a directory listing.
/// - Returns: the list.
/// - Throws: ``CommandFailure`` with all errors, one line each.
func loadSource(
  _ source: String, tree: Bool, rules: PathRules = .mount, allowsListings: Bool = false
) throws(CommandFailure) -> SourceList {
  do {
    if source.contains("://") {
      return try SourceListReader.single(url: source, tree: tree, allowsListings: allowsListings)
    }
    let isStandardInput = source == "-"
    let bytes: [UInt8]
    do {
      bytes =
        try isStandardInput
        ? StreamCalls.contents(of: STDIN_FILENO) : StreamCalls.contents(ofFile: source)
    } catch {
      let name = isStandardInput ? "standard input" : "list '\(Redaction.shown(source))'"
      throw CommandFailure("cannot \(error.rawValue == EISDIR ? "read" : "open") \(name)", error)
    }
    return try SourceListReader.parse(
      bytes, sourceName: isStandardInput ? "standard input" : Redaction.shown(source), tree: tree,
      rules: rules, allowsListings: allowsListings)
  } catch let failure as CommandFailure {
    throw failure
  } catch let error as SourceListError {
    throw CommandFailure(messages: error.description.split(separator: "\n").map(String.init))
  } catch {
    throw CommandFailure("\(error)")
  }
}

/// Prints the warnings of a list to standard error.
func printWarnings(of list: SourceList) {
  for warning in list.warnings {
    printToStandardError(Journal.marked("httpfs: warning: \(warning)", as: .warning))
  }
}
