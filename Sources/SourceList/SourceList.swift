/// A list of URLs, parsed and checked: the content of a mount.
///
/// The format is a superset of aria2's input file: one URL a line, mirrors of one file separated by
/// TAB, `#` comments, and indented `name=value` options below a URL. Or it is a Metalink (version
/// 3, or 4: RFC 5854), recognized by its first character. Paths are unique, and no path is both a
/// file and a directory. Names that differ only in case are different names.
package struct SourceList: Sendable, Equatable {
  /// The files, in the order of the list; at least one, except with ``PathRules/local``.
  package let entries: [SourceEntry]

  /// What was ignored, ascending by line.
  package let warnings: [SourceDiagnostic]

  package init(entries: [SourceEntry], warnings: [SourceDiagnostic]) {
    self.entries = entries
    self.warnings = warnings
  }

  /// The maximum length of a line.
  ///
  /// A signed URL with all its mirrors is far shorter; a binary file given by mistake is not.
  package static let maximumLineByteCount = 64 * 1024

  /// The maximum size of an inflated list: several million URLs.
  package static let maximumInflatedByteCount = 1 << 30

  /// The maximum number of files in a list.
  ///
  /// Each takes some 250 bytes of memory.
  package static let maximumEntryCount = 5_000_000

  /// The maximum number of URLs of one file, in a list or a Metalink: each choice of a server
  /// examines all of them.
  package static let maximumURLCount = 1000

  /// The maximum number of `header=` lines below a URL, and of bytes in their names and values.
  ///
  /// They are part of each request, and servers accept less.
  package static let maximumHeaderCount = 100
  package static let maximumHeaderByteCount = 64 << 10

  /// The names at the root that the mount uses itself.
  package static let reservedRootNames: Set<String> = [
    ".status", ".status.json", ".metrics", ".control",
  ]
}
