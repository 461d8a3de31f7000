import HTTPTransferCore
import MountControl
import RangeCache
import SourceList
import TextFormat

/// An argument that selects files of a cache: a name, a URL, or a pattern of either.
struct CachePattern {
  private let pattern: NamePattern
  private var text: String { pattern.text }
  /// The argument as a URL, if it is one: its query selects one entry among those that look alike.
  private let url: RemoteURL?

  init(_ text: String) {
    pattern = NamePattern(text)
    url = try? RemoteURL(text)
  }

  /// The patterns of `names`, each of which selects a file in one of the caches at least.
  ///
  /// - Throws: ``CommandFailure`` with a line for each pattern that selects none.
  static func used(
    _ names: [String], inCachesAt paths: [String]
  ) throws(CommandFailure) -> [CachePattern] {
    guard !names.isEmpty else { return [] }
    let patterns = names.map(CachePattern.init)
    var idle = patterns
    for path in paths {
      let inventory: CacheInventory
      do throws(CacheError) {
        inventory = try CacheInventory(path: path)
      } catch {
        guard paths.count > 1 else { throw CommandFailure("\(error)") }
        // The command itself reports a cache that cannot be read.
        continue
      }
      let files = try CachedFile.all(in: inventory)
      idle = idle.filter { pattern in !files.contains { pattern.matches($0) } }
    }
    guard idle.isEmpty else {
      let place = paths.count == 1 ? paths[0] : "\(paths.count) caches"
      throw CommandFailure(
        messages: idle.map {
          "\(place): no cached file is called '\(escapingControls($0.shown))'; "
            + "'httpfs cache ls' lists them"
        })
    }
    return patterns
  }

  /// The pattern, for messages: a URL without its secrets.
  var shown: String { url?.redacted ?? text }

  /// Whether it selects `file`.
  func matches(_ file: CachedFile) -> Bool {
    if text == file.entry.name { return true }
    if let url, file.entry.isFiled(under: url.withoutSignature) { return true }
    guard let source = file.source else { return false }
    // The record stores only that there was a query.
    let path = String(source.prefix { $0 != "?" })
    // The name of the file in a mount of the URL.
    let name = try? SourceListReader.single(url: path, tree: false).entries.first?.path
    return [source, path, name].contains { candidate in
      guard let candidate else { return false }
      return pattern.matches(candidate)
    }
  }
}
