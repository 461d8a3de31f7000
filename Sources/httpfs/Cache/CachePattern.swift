import HTTPTransferCore
import MountControl
import RangeCache
import SourceList

/// What names files of a cache on the command line: a name, a URL, or a glob of either.
struct CachePattern {
  private let pattern: NamePattern
  private var text: String { pattern.text }
  /// The URL that it is, if it is one: its query names one entry among those shown alike.
  private let url: RemoteURL?

  init(_ text: String) {
    pattern = NamePattern(text)
    url = try? RemoteURL(text)
  }

  /// The pattern, for messages: a URL without its secrets.
  var shown: String { url?.redacted ?? text }

  /// Whether it names `file`.
  func matches(_ file: CachedFile) -> Bool {
    if text == file.entry.name { return true }
    if let url, file.entry.isFiled(under: url.withoutSignature) { return true }
    guard let source = file.source else { return false }
    // The record keeps of a query that there was one.
    let path = String(source.prefix { $0 != "?" })
    // As a mount of the URL calls the file.
    let name = try? SourceList.single(url: path, tree: false).entries.first?.path
    return [source, path, name].contains { candidate in
      guard let candidate else { return false }
      return pattern.matches(candidate)
    }
  }
}
