import CLinux
import Glibc
import HTTPTransfer
import HTTPTransferCore
import SourceList
import TextFormat

/// Where files go, and which of them fail because they cannot go there.
extension GetCommand {
  /// The entries with their checksums, and with the failures of those that have no place.
  func planned(_ entries: [SessionEntry], _ session: SessionFile?) throws -> [SessionEntry] {
    try TransferRun.endIfSignalled()
    var entries = entries
    if let checksumFile { try addChecksums(of: checksumFile, to: &entries) }
    try failDuplicates(in: &entries)
    guard let session else { return entries }
    let own = AbsolutePath.of(session.store.path)
    for index in entries.indices where !entries[index].isNameless {
      try TransferRun.endIfSignalled(at: index)
      guard let obstacle = obstacle(to: entries[index].path, in: session, own) else { continue }
      guard entries[index].isNamedByOthers else { throw CommandFailure(obstacle) }
      entries[index].fail(JobFailure(.destinationExists, obstacle, canResume: false))
    }
    for index in entries.indices { entries[index].noteSession() }
    return entries
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
  private func addChecksums(
    of path: String, to entries: inout [SessionEntry]
  ) throws(CommandFailure) {
    let file = try ChecksumFile(path: path)
    var missing: [String] = []
    for index in entries.indices
    where !entries[index].source.isListing && !entries[index].isNameless {
      let entry = entries[index]
      if let checksum = file.checksum(of: entry.source.path) ?? file.checksum(of: entry.name) {
        entries[index].source.checksum = checksum
        continue
      }
      if entry.isOfSession, entry.source.checksum != nil { continue }
      let message =
        "'\(escapingControls(entry.name))' has no line in '\(escapingControls(path))'"
      if entry.asksForName {
        // A later run could take it for a file that needs no line.
        entries[index].fail(JobFailure(.invalidRequest, message, canResume: false))
      } else {
        missing.append(message)
      }
    }
    if !missing.isEmpty { throw CommandFailure(messages: missing) }
  }

  /// The entries of the command with the places of `--output`.
  func placed(_ entries: [SessionEntry]) -> [SessionEntry] {
    let file = isOutputFile ? output : nil
    return entries.map { entry in
      var entry = entry
      if let file { entry.place(at: file) } else { entry.place(in: output ?? ".") }
      return entry
    }
  }

  /// Lets files fail whose paths other files have; those of the user end the command.
  private func failDuplicates(in entries: inout [SessionEntry]) throws {
    var seen: [PathKey: Int] = [:]
    let directories = Self.directories(of: entries)
    for (count, index) in Self.orderOfNames(entries).enumerated() {
      try TransferRun.endIfSignalled(at: count)
      let entry = entries[index]
      let place = entry.place
      let failure: JobFailure
      if let other = seen[place] {
        guard entry.isNamedByOthers else {
          let helpsTree =
            !tree && entries[other].source.url.hasOtherTreeName(than: entry.source.url)
          throw CommandFailure(
            "two files of the name '\(entry.path)'; " + (helpsTree ? "use --tree, or " : "")
              + "give one another name in a list, with an indented line out=NAME below its URL")
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
