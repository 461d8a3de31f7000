import HTTPTransferCore
import MountControl

/// Chooses among the files and directories below a listing.
///
/// Their paths are relative to the listing, without a slash at their ends.
struct ListingFilter: Sendable {
  private let included: [NamePattern]
  private let excluded: [NamePattern]
  /// The parts of ``included`` that begin with a dot.
  private let dotted: [NamePattern]
  /// How many levels of directories are read; 0 for the files of the listing itself.
  private let depth: Int

  init(include: [String], exclude: [String], depth: Int) {
    included = include.map { NamePattern($0) }
    excluded = exclude.map { NamePattern($0) }
    dotted = include.flatMap { $0.pathParts() }.filter(Self.hasDot).map { NamePattern($0) }
    self.depth = depth
  }

  /// Whether `name` begins with a dot, and no part of an included pattern that does so matches it.
  ///
  /// In a home directory, such names are those of settings, some of which run commands.
  func hides(name: String) -> Bool {
    Self.hasDot(name) && !dotted.contains { $0.matches(name) }
  }

  /// Compares bytes, so that no combining character can hide the dot.
  private static func hasDot(_ name: String) -> Bool { name.utf8.first == UInt8(ascii: ".") }

  /// Whether the file at `path` is downloaded.
  func takes(file path: String) -> Bool {
    (included.isEmpty || Self.matches(included, path)) && !Self.matches(excluded, path)
  }

  /// Whether the directory at `path` is read; the first directories have the depth 1.
  func enters(directory path: String, depth: Int) -> Bool {
    depth <= self.depth && !Self.matches(excluded, path) && !Self.matches(excluded, path + "/")
  }

  private static func matches(_ patterns: [NamePattern], _ path: String) -> Bool {
    guard !patterns.isEmpty else { return false }
    let isDirectory = path.hasSuffix("/")
    let last = (path.split(separator: "/").last ?? "") + (isDirectory ? "/" : "")
    return patterns.contains { $0.matches(path) || $0.matches(String(last)) }
  }
}
