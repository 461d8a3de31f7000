import DirectoryListing
import HTTPTransfer
import HTTPTransferCore
import RemoteFiles
import SourceList

/// The files that directory listings bring, and the directories that are still to be read.
///
/// Directories are read level by level. A value without I/O: ``ListingReader`` reads.
struct ListingWalk {
  /// A directory to read.
  struct Directory: Sendable {
    let entry: SessionEntry
    /// Its path below the first directory; empty for the first.
    fileprivate let path: String
    /// How many directories lie above it.
    let depth: Int
    /// The paths of the URLs that have answered for these.
    fileprivate let above: [String]
  }

  /// The files and directories that all listings together may bring.
  static let maximumEntryCount = 1_000_000
  /// The bytes of their paths and URLs.
  static let maximumByteCount = 512 << 20

  private let filter: ListingFilter
  /// The entries that are no listings, in their order.
  private let named: [SessionEntry]
  private var found: [SessionEntry] = []
  private var level: [Directory] = []
  /// The URLs of ``named`` that the command names, and of directories, also those to which
  /// redirects have led: none is fetched twice.
  private var known: Set<RemoteURL>
  private var entryCount = 0
  private var byteCount = 0
  /// How many names of listings cannot be names of files.
  private(set) var skippedCount = 0
  /// How many wanted names begin with a dot.
  private(set) var hiddenCount = 0

  init(_ entries: [SessionEntry], filter: ListingFilter) {
    self.filter = filter
    named = entries.filter { !$0.source.isListing }
    // A file that only the session has brought takes what a listing says about it now.
    known = Set(named.filter { !$0.isOfSession || $0.isContinued }.map(\.source.url))
    for entry in entries where entry.source.isListing && known.insert(entry.source.url).inserted {
      level.append(Directory(entry: entry, path: "", depth: 0, above: []))
    }
  }

  /// The entries of the walk: those of the session, the other named ones, then the files of
  /// listings in the order of their paths and URLs, with the directories that could not be read.
  ///
  /// - Throws: the exit code of a signal: a million paths take seconds.
  func entries() throws -> SessionMerge {
    var comparisonCount = 0
    let sorted = try found.map { (PathKey($0.path), $0) }.sorted {
      comparisonCount += 1
      try TransferRun.endIfSignalled(at: comparisonCount)
      if $0.0 != $1.0 { return $0.0 < $1.0 }
      // Listings arrive in any order, but which of two files fails must not change.
      return $0.1.source.url.text < $1.1.source.url.text
    }
    return SessionMerge(
      named.filter(\.isStored), with: named.filter { !$0.isStored } + sorted.map(\.1))
  }

  /// Whether listings have brought nothing to download.
  var isEmpty: Bool { named.isEmpty && found.isEmpty }

  /// The directories to read now; empty if none is left.
  mutating func takeLevel() -> [Directory] {
    defer { level = [] }
    return level
  }

  /// Takes the names of a directory.
  ///
  /// - Throws: if all listings together are too long.
  mutating func take(
    _ names: ListedNames, of directory: Directory
  ) throws(CommandFailure) {
    guard !directory.above.contains(names.url.path) else {
      let failure = JobFailure(
        .redirect, "the listing redirects to a directory above it", canResume: true)
      return fail(directory, failure)
    }
    let isRedirected = names.url != directory.entry.source.url
    guard !isRedirected || known.insert(names.url).inserted else { return }
    skippedCount += names.skippedCount
    let above = directory.above + [names.url.path]
    for entry in names.entries {
      let path = directory.path.isEmpty ? entry.name : "\(directory.path)/\(entry.name)"
      let isWanted =
        entry.isDirectory
        ? filter.enters(directory: path, depth: directory.depth + 1) : filter.takes(file: path)
      guard isWanted, let url = names.url(of: entry) else { continue }
      guard !filter.hides(name: entry.name) else {
        hiddenCount += 1
        continue
      }
      guard entry.isDirectory ? known.insert(url).inserted : !known.contains(url) else { continue }
      let child = directory.entry.child(entry.name, url: url, isListing: entry.isDirectory)
      try count(child)
      if entry.isDirectory {
        level.append(
          Directory(entry: child, path: path, depth: directory.depth + 1, above: above))
      } else {
        found.append(child)
      }
    }
  }

  /// Takes a directory that cannot be read: it fails like a file.
  mutating func fail(_ directory: Directory, _ failure: JobFailure) {
    var entry = directory.entry
    entry.fail(failure)
    found.append(entry)
  }

  private mutating func count(_ entry: SessionEntry) throws(CommandFailure) {
    entryCount += 1
    byteCount += entry.name.utf8.count + entry.source.url.text.utf8.count
    guard entryCount <= Self.maximumEntryCount, byteCount <= Self.maximumByteCount else {
      throw CommandFailure(
        "the listings name more than \(Self.maximumEntryCount) files and directories, or"
          + " \(Self.maximumByteCount >> 20) MiB of names: choose with --include, --exclude or"
          + " --depth, or download one directory after the other")
    }
  }
}
