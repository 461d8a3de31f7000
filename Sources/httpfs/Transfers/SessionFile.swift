import Glibc
import HTTPTransfer
import HTTPTransferCore
import SourceList

/// A file to fetch, and where it goes.
struct SessionEntry: Sendable {
  var source: SourceEntry
  /// The path of the file, relative to the working directory or absolute.
  var path: String
  /// Whether ``path`` is final: of a session it is.
  var isPlaced = false

  init(_ source: SourceEntry) {
    self.source = source
    path = source.path
  }

  /// Whether `other` has the same URL with another signature.
  fileprivate func isSignedAnew(by other: SessionEntry) -> Bool {
    let (own, others) = (source.url, other.source.url)
    return own.userInfo == others.userInfo && own.withoutSignature == others.withoutSignature
  }
}

/// What `httpfs get --session` has to do, in the format of a list: what is finished is not in it.
struct SessionFile {
  let path: String

  /// The beginning of every session.
  private static let heading = "# A session of httpfs get"

  /// The entries of the file, where it exists, followed by those of `entries` that it does not have.
  func merged(with entries: [SessionEntry]) throws(CommandFailure) -> [SessionEntry] {
    guard access(path, F_OK) == 0 else {
      guard !entries.isEmpty else {
        throw CommandFailure(
          "the session '\(path)' does not exist; name URLs or a list to begin one")
      }
      return entries
    }
    // It is replaced, and removed in the end: never a list that somebody has written by hand.
    if let bytes = try? contents(ofFile: path), !bytes.starts(with: Self.heading.utf8) {
      throw CommandFailure(
        "'\(path)' is not a session; fetch a list with -i, and name another file for the session")
    }
    let list = try loadSource(path, tree: false, rules: .local)
    printWarnings(of: list)
    var merged = list.entries.map { source in
      var entry = SessionEntry(source)
      entry.isPlaced = true
      return entry
    }
    for entry in entries where !merged.contains(where: { $0.source.url == entry.source.url }) {
      if let index = merged.firstIndex(where: { $0.isSignedAnew(by: entry) }) {
        merged[index].source.url = entry.source.url
      } else {
        merged.append(entry)
      }
    }
    return merged
  }

  /// The text of a session.
  ///
  /// - Parameter items: the entries that are not finished, with their states and reasons.
  /// - Returns: a list, which says in comments how things stand.
  static func text(of items: [(entry: SessionEntry, state: String, reason: String?)]) -> String {
    var text = "\(heading); go on with: httpfs get --session FILE\n"
    for item in items {
      text += "\n# \(item.state)" + (item.reason.map { ": \($0)" } ?? "") + "\n"
      text +=
        ([item.entry.source.url] + item.entry.source.mirrors).map(\.text)
        .joined(separator: "\t") + "\n"
      text += "  out=\(item.entry.path)\n"
      for header in item.entry.source.headers {
        text += "  header=\(header.name): \(header.value)\n"
      }
      if let checksum = item.entry.source.checksum { text += "  checksum=\(checksum)\n" }
      if let length = item.entry.source.length { text += "  length=\(length)\n" }
      if let rate = item.entry.source.rateLimit { text += "  max-download-limit=\(rate)\n" }
      for option in item.entry.source.pieces?.options ?? [] { text += "  pieces=\(option)\n" }
    }
    return text
  }

  /// Replaces the file in one step; it holds URLs with their credentials, so it is private.
  func write(_ text: String) throws(CommandFailure) {
    let temporary = path + ".tmp"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure(.last) }
    defer { close(descriptor) }
    do throws(CommandFailure) {
      try fill(descriptor, text)
      guard rename(temporary, path) == 0 else { throw failure(.last) }
    } catch {
      // On a full disk it would take room for nothing.
      unlink(temporary)
      throw error
    }
  }

  private func fill(_ descriptor: Int32, _ text: String) throws(CommandFailure) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw failure(.last) }
      rest = rest.dropFirst(count)
    }
    guard fsync(descriptor) == 0 else { throw failure(.last) }
  }

  private func failure(_ error: SystemError) -> CommandFailure {
    CommandFailure("cannot write session '\(path)'", error)
  }
}

/// Keeps the session file true while its transfers run.
final class SessionKeeper {
  private let file: SessionFile
  private let entries: [SessionEntry]
  private let jobs: [TransferRun.Job]
  private var lastText = ""
  /// Why the file does not say how things stand; nil where it does.
  private(set) var failure: CommandFailure?

  init(
    _ file: SessionFile, _ entries: [SessionEntry], _ jobs: [TransferRun.Job]
  ) throws(CommandFailure) {
    self.file = file
    self.entries = entries
    self.jobs = jobs
    try write()
  }

  /// Writes the file where something has changed; at the end, where nothing is left, removes it.
  func keep(isEnd: Bool) {
    do throws(CommandFailure) {
      if isEnd, jobs.allSatisfy({ $0.transfer.state == .finished }) {
        unlink(file.path)
      } else {
        try write()
      }
      // What it says now is true again.
      failure = nil
    } catch {
      failure = error
    }
  }

  private func write() throws(CommandFailure) {
    let items = zip(entries, jobs).compactMap {
      entry, job -> (entry: SessionEntry, state: String, reason: String?)? in
      let progress = job.transfer.progress
      if progress.state == .finished { return nil }
      // A cancelled transfer is one to go on with.
      let state = progress.state == .cancelled ? "paused" : progress.state.rawValue
      return (entry, state, progress.state == .failed ? progress.reason : nil)
    }
    let text = SessionFile.text(of: items)
    guard text != lastText else { return }
    try file.write(text)
    lastText = text
  }
}
