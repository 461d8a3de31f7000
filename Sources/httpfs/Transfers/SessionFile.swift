import Glibc
import HTTPTransfer
import HTTPTransferCore
import SourceList

/// A file to fetch and its destination.
struct SessionEntry: Sendable {
  var source: SourceEntry
  /// The directory that the user named, absolute or relative to the working directory, for a file
  /// whose ``name`` comes from a list or a URL; nil if the user named the file.
  private(set) var directory: String?
  /// The path of the file in ``directory``.
  private(set) var name: String
  /// Whether the destination is final, as it is in a session.
  private(set) var isPlaced = false
  /// Whether it is itself in the session, not only the directory that lists it.
  private(set) var isOfSession = false
  /// Where the name comes from.
  private(set) var nameSource = NameSource.user
  /// Why it fails without a request; nil if it does not.
  var failure: JobFailure?

  /// Whether a session keeps it.
  fileprivate var canResume: Bool { failure?.canResume ?? !isNameless }

  /// A file without a destination yet.
  init(_ source: SourceEntry) {
    self.source = source
    name = source.path
  }

  /// A file of a session: the user named the part before `//`.
  fileprivate init(placed source: SourceEntry) {
    self.init(source)
    if source.isNamedByServer { nameSource = .earlierResponse }
    isPlaced = true
    isOfSession = true
    if name.hasFinalSlash {
      self.source.url = source.url.listing ?? source.url
      self.source.isListing = source.url.listing != nil
    }
    // Compare bytes, so that no combining character can hide the slashes.
    let bytes = Array(name.utf8)
    guard let slashes = bytes.firstRange(of: Array("//".utf8)) else { return }
    directory =
      slashes.lowerBound == 0
      ? "/" : String(decoding: bytes[..<slashes.lowerBound], as: UTF8.self)
    let end = self.source.isListing && slashes.upperBound < bytes.count ? 1 : 0
    name = String(decoding: bytes[slashes.upperBound...].dropLast(end), as: UTF8.self)
  }

  /// A file or directory that the directory listing of this entry names.
  func child(_ name: String, url: RemoteURL, isListing: Bool) -> SessionEntry {
    var child = self
    child.isOfSession = false
    child.name = self.name.isEmpty ? name : "\(self.name)/\(name)"
    child.source.path = child.name
    child.source.url = url
    child.source.isListing = isListing
    child.nameSource = .listing
    return child
  }

  /// Whether its server is asked for the name.
  var asksForName: Bool { source.asksForName && !isPlaced }

  /// Whether neither its URL nor its server has given it a name.
  var isNameless: Bool { source.asksForName && (name.isEmpty || name.hasFinalSlash) }

  /// Whether the name depends on the answer of a server: then a name that the user can see comes
  /// first, and an unsuitable one fails this file alone.
  var isNamedByAnswer: Bool { source.asksForName }

  /// Replaces the last name of the path by the one that the server has given, if it has.
  ///
  /// Without any name, the file fails as the question has.
  mutating func take(_ answer: ServerNames.Answer) {
    switch answer {
    case .name(let last):
      let start = name.utf8.lastIndex(of: UInt8(ascii: "/")).map { name.utf8.index(after: $0) }
      let own = name[(start ?? name.startIndex)...]
      // The user can see the name of the URL: a server does not choose it by repeating it.
      nameSource = PathKey(own) == PathKey(last) ? .urlAfterAnswer : .response
      name = String(name[..<own.startIndex]) + last
    case .noName:
      nameSource = .urlAfterAnswer
      if isNameless { failure = .isNameless(after: nil) }
    case .failure(let cause):
      if isNameless { failure = .isNameless(after: cause) }
    }
  }

  /// Sets the path that the user named.
  mutating func place(at path: String) {
    isPlaced = true
    name = Self.withoutDoubledSlashes(path)
  }

  /// Puts the file into a directory that the user named, under its own name.
  mutating func place(in directory: String) {
    isPlaced = true
    let whole = Self.withoutDoubledSlashes(directory)
    let bytes = whole.utf8
    self.directory =
      bytes.count > 1 && whole.hasFinalSlash
      ? String(decoding: bytes.dropLast(), as: UTF8.self) : whole
  }

  /// The path of the file, relative to the working directory or absolute.
  ///
  /// That of a directory listing ends in `/`.
  var path: String {
    let last = source.isListing ? (name.isEmpty ? "" : name + "/") : name
    guard let directory, directory != "." else { return last.isEmpty ? "./" : last }
    return directory == "/" ? "/" + last : "\(directory)/\(last)"
  }

  /// What messages call it: its path, or its URL if it has no name.
  var shownName: String { isNameless ? source.url.redacted : path }

  /// The path in the form of a session.
  fileprivate var sessionPath: String {
    let last = source.isListing && !name.isEmpty ? name + "/" : name
    guard let directory else { return last }
    return directory == "/" ? "//" + last : "\(directory)//\(last)"
  }

  private static func withoutDoubledSlashes(_ path: String) -> String {
    var bytes: [UInt8] = []
    let slash = UInt8(ascii: "/")
    for byte in path.utf8 where byte != slash || bytes.last != slash { bytes.append(byte) }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Equal for two entries whose URLs differ only in their signatures.
  fileprivate var unsigned: [String?] { [source.url.userInfo, source.url.withoutSignature] }
}

/// The unfinished files of `httpfs get --session`, in the format of a list.
struct SessionFile {
  /// The file itself, which this process uses exclusively.
  let store: SessionStore

  private var path: String { store.path }

  /// - Throws: if another process uses the session.
  init(path: String) throws(CommandFailure) { store = try SessionStore(path: path) }

  /// The first line of every session.
  static let heading = "# A session of httpfs get"

  /// The entries of the file, if it exists, followed by those of `entries` that it lacks.
  ///
  /// - Parameters:
  ///   - entries: those of the command line.
  ///   - warns: whether to report ignored parts of the file.
  /// - Returns: all entries, without duplicates.
  /// - Throws: why the file cannot be read, or that there is nothing to do.
  func merged(
    with entries: [SessionEntry], warns: Bool
  ) throws(CommandFailure) -> [SessionEntry] {
    guard let bytes = try store.contents() else {
      guard !entries.isEmpty else {
        throw CommandFailure(
          "the session '\(path)' does not exist; name URLs or a list to begin one")
      }
      return entries
    }
    // The file will be replaced and finally removed, so it must not be a list that a user wrote.
    guard bytes.starts(with: Self.heading.utf8) else {
      throw CommandFailure(
        "'\(path)' is not a session; fetch a list with -i, and name another file for the session")
    }
    let list: SourceList
    do throws(SourceListError) {
      list = try SourceListReader.parse(bytes, sourceName: path, rules: .local)
    } catch {
      throw CommandFailure(messages: error.description.split(separator: "\n").map(String.init))
    }
    if warns { printWarnings(of: list) }
    var merged = list.entries.map { SessionEntry(placed: $0) }
    var urls = Set(merged.map(\.source.url))
    var places = Dictionary(
      merged.enumerated().map { ($1.unsigned, $0) }, uniquingKeysWith: { first, _ in first })
    for entry in entries where urls.insert(entry.source.url).inserted {
      if let index = places[entry.unsigned] {
        merged[index].source.url = entry.source.url
      } else {
        places[entry.unsigned] = merged.count
        merged.append(entry)
      }
    }
    return merged
  }

  /// The text of a session.
  ///
  /// - Parameter items: the unfinished entries with their states and reasons.
  /// - Returns: a list, with the states in comments.
  static func text(of items: [(entry: SessionEntry, state: String, reason: String?)]) -> String {
    var text = "\(heading); go on with: httpfs get --session FILE\n"
    for item in items {
      text += "\n# \(item.state)" + (item.reason.map { ": \($0)" } ?? "") + "\n"
      text +=
        ([item.entry.source.url] + item.entry.source.mirrors).map(\.text)
        .joined(separator: "\t") + "\n"
      text += "  out=\(item.entry.sessionPath)\n"
      if item.entry.nameSource.isOfResponse { text += "  named-by=server\n" }
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
}

/// Updates the session file while its transfers run.
final class SessionKeeper {
  private let file: SessionFile
  private let entries: [SessionEntry]
  private var lastText = ""
  /// When the file may be written again.
  private var nextWrite = ContinuousClock.now
  /// The change count of the file's content.
  private var lastChangeCount: Int?
  /// Why the file is not up to date; nil if it is.
  private(set) var failure: CommandFailure?

  init(_ file: SessionFile, _ entries: [SessionEntry]) throws(CommandFailure) {
    self.file = file
    self.entries = entries
    let state = TransferProgress.State.queued.rawValue
    try write(entries.filter(\.canResume).map { (entry: $0, state: state, reason: nil) })
  }

  /// How many bytes a second are written on average.
  private static let bytesPerSecond = 512 << 10

  /// Writes the file if something has changed, a long file less often; at the end, removes it if
  /// nothing is left.
  func keep(_ board: TransferBoard, isEnd: Bool) {
    do throws(CommandFailure) {
      if isEnd || board.changeCount != lastChangeCount && .now >= nextWrite {
        let items = Self.items(entries, board)
        if isEnd, items.isEmpty { try file.store.remove() } else { try write(items) }
        lastChangeCount = board.changeCount
      }
      // The file is up to date again.
      failure = nil
    } catch {
      failure = error
    }
  }

  private static func items(
    _ entries: [SessionEntry], _ board: TransferBoard
  ) -> [(entry: SessionEntry, state: String, reason: String?)] {
    entries.indices.compactMap { index in
      let state = board.states[index]
      if state == .finished || !entries[index].canResume { return nil }
      // A cancelled transfer can be resumed.
      let word = state == .cancelled ? "paused" : state.rawValue
      return (entries[index], word, board.reasons[index])
    }
  }

  private func write(
    _ items: [(entry: SessionEntry, state: String, reason: String?)]
  ) throws(CommandFailure) {
    let text = SessionFile.text(of: items)
    nextWrite = .now + .seconds(1) * text.utf8.count / Self.bytesPerSecond
    guard text != lastText else { return }
    try file.store.write(text)
    lastText = text
  }
}
