import CLinux
import Glibc
import HTTPTransfer
import HTTPTransferCore
import SourceList
import TextFormat

/// Where files go, and which of them fail because they cannot go there.
struct DownloadPlan {
  private(set) var entries: [SessionEntry]
  /// Whether names are whole paths of URLs already.
  private let tree: Bool

  /// - Throws: the exit code of a signal.
  init(_ entries: [SessionEntry], tree: Bool) throws {
    try TransferRun.endIfSignalled()
    self.entries = entries
    self.tree = tree
  }

  /// Lets files fail that a session cannot hold; those of the user end the command.
  mutating func failObstacles(of session: SessionFile) throws {
    let own = AbsolutePath.of(session.store.path)
    for index in entries.indices {
      try TransferRun.endIfSignalled(at: index)
      guard let obstacle = obstacle(to: entries[index].path, in: session, own) else { continue }
      guard entries[index].isNamedByOthers else { throw CommandFailure(obstacle) }
      entries[index].excludeFromSession()
      entries[index].fail(JobFailure(.destinationExists, obstacle, canResume: false))
    }
    for index in entries.indices { entries[index].noteSession() }
  }

  /// Why a session, which has the absolute path `own`, cannot hold a file; nil if it can.
  private func obstacle(to path: String, in session: SessionFile, _ own: String) -> String? {
    guard AbsolutePath.of(path) != own, !session.store.isUsed(by: path) else {
      return "'\(path)' cannot be the session and what is downloaded at once"
    }
    // A session has a line for it, with the options of a list.
    guard !path.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
      return "a session cannot hold the name '\(path)'; choose one without line breaks and other"
        + " control characters"
    }
    return nil
  }

  /// Gives each file the checksum of the name in its URL, or else of its own.
  ///
  /// A server should not choose the line that its file is compared with. A file of a session may
  /// keep the checksum that it has there.
  ///
  /// - Throws: ``CommandFailure`` with a line for each entry that has none, whatever servers say.
  mutating func addChecksums(of file: ChecksumFile) throws(CommandFailure) {
    var missing: [String] = []
    for index in entries.indices {
      let entry = entries[index]
      guard !entry.source.isListing, !entry.isNameless else {
        // It has failed. A later run would know no line for it, or for its files.
        entries[index].excludeFromSession()
        continue
      }
      if let checksum = file.checksum(of: entry.source.path) ?? file.checksum(of: entry.name) {
        entries[index].take(checksum)
        continue
      }
      if entry.isOfSession, entry.source.checksum != nil { continue }
      let message =
        "'\(escapingControls(entry.name))' has no line in '\(escapingControls(file.path))'"
      if entry.asksForName {
        // A later run could take it for a file that needs no line.
        entries[index].excludeFromSession()
        entries[index].fail(JobFailure(.invalidRequest, message, canResume: false))
      } else {
        missing.append(message)
      }
    }
    if !missing.isEmpty { throw CommandFailure(messages: missing) }
  }

  /// Lets files fail whose paths other files have; those of the user end the command.
  mutating func failDuplicates() throws {
    var seen: [PathKey: Int] = [:]
    let directories = Self.directories(of: entries)
    for (count, index) in Self.orderOfNames(entries).enumerated() {
      try TransferRun.endIfSignalled(at: count)
      let entry = entries[index]
      let place = entry.place
      let failure: JobFailure
      if let other = seen[place] {
        guard entry.isNamedByOthers || entry.isOfSession else {
          throw CommandFailure(clash(of: entry, with: entries[other]))
        }
        failure = .isDuplicate
      } else if entry.nameSource.isOfResponse, directories.contains(place) {
        failure = .isDuplicate
      } else if entry.nameSource.isOfResponse, Self.isNoFile(entry.path) {
        failure = .isNoFile
      } else {
        seen[place] = index
        continue
      }
      entries[index].fail(entry.isOfSession ? failure.keptBySession : failure)
    }
  }

  private func clash(of entry: SessionEntry, with other: SessionEntry) -> String {
    let start = "two files of the name '\(entry.path)'"
    if other.isOfSession {
      return "\(start), one of them in the session, and not certainly the same file: choose another"
        + " name with -o or out=, let the session finish, or delete its lines in the session"
    }
    let helpsTree = !tree && other.source.url.hasOtherTreeName(than: entry.source.url)
    return "\(start); " + (helpsTree ? "use --tree, or " : "")
      + "give one another name in a list, with an indented line out=NAME below its URL"
  }

  /// The entries that have names, in the order in which they take them.
  ///
  /// Files of the session come first: they may have partial files. A server's name must not take
  /// the place of one that the user can see, and an answer must not decide whether another file is
  /// downloaded.
  private static func orderOfNames(_ entries: [SessionEntry]) -> [Int] {
    let named = entries.indices.filter { !entries[$0].isNameless }
    let new = named.filter { !entries[$0].isOfSession }
    let others = new.filter { !entries[$0].nameSource.isOfServer }
    return named.filter { entries[$0].isOfSession }
      + others.filter { !entries[$0].asksForName }
      + others.filter { entries[$0].asksForName }
      + new.filter { entries[$0].nameSource.isOfServer }
  }

  /// The directories of all files, if a response names any file; otherwise none.
  private static func directories(of entries: [SessionEntry]) -> Set<PathKey> {
    guard entries.contains(where: { $0.nameSource.isOfResponse }) else { return [] }
    var directories: Set<PathKey> = []
    for entry in entries where entry.failure == nil {
      var path = Substring(entry.place.text)
      while let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
        path = path[..<slash]
        guard directories.insert(PathKey(path)).inserted else { break }
      }
    }
    return directories
  }

  /// Whether something else than a regular file or a link is at a path.
  private static func isNoFile(_ path: String) -> Bool {
    var status = stat()
    guard lstat(path, &status) == 0 else { return false }
    return ![S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT)
  }
}
