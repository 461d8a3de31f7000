import Glibc
import HTTPTransfer
import HTTPTransferCore
import SourceList
import TextFormat

/// A file to fetch and its destination.
struct SessionEntry: Sendable {
  var source: SourceEntry
  /// The directory that the user named, absolute or relative to the working directory, for a file
  /// whose ``name`` comes from a list or a URL; nil if the user named the file.
  private(set) var directory: String?
  /// The path of the file in ``directory``.
  private(set) var name: String
  /// Whether it has its place in the session, which does not hold only the directory that lists it.
  private(set) var isOfSession = false
  /// Whether the session has brought it, with its place or without.
  private(set) var isStored = false
  /// Whether it is stored, and the command names it again.
  private(set) var isContinued = false
  /// Whether the command names the length, and the hashes of the pieces, of a stored file.
  private var isLengthNamed = false
  private var arePiecesNamed = false
  /// Whether no session may keep it, whatever it fails of.
  private var isExcluded = false
  /// Where the name comes from.
  private(set) var nameSource = NameSource.user
  /// Why the question for its name has failed; nil if it has not.
  private(set) var questionFailure: JobFailure?
  /// Why it fails without a request; nil if it does not.
  private(set) var failure: JobFailure?

  /// Whether a session keeps it.
  fileprivate var canResume: Bool { !isExcluded && (failure?.canResume ?? !isNameless) }

  /// A file without a destination yet.
  init(_ source: SourceEntry) {
    self.source = source
    name = source.path
  }

  /// A file of a session: the user named the part before `//`.
  fileprivate init(stored source: SourceEntry) {
    self.init(source)
    if source.isNamedByServer { nameSource = .earlierResponse }
    isStored = true
    isOfSession = !source.asksForName
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
    // A checksum is that of the URL's name, before that of the server's.
    let ofURL = source.isNamedByServer ? try? SourceListReader.single(url: source.url.text) : nil
    self.source.path = ofURL?.entries.first?.path ?? name
  }

  /// A file or directory that the directory listing of this entry names.
  func child(_ name: String, url: RemoteURL, isListing: Bool) -> SessionEntry {
    var child = self
    child.isOfSession = false
    child.isStored = false
    child.isContinued = false
    child.name = self.name.isEmpty ? name : "\(self.name)/\(name)"
    child.source.path = child.name
    child.source.url = url
    child.source.isListing = isListing
    child.nameSource = .listing
    return child
  }

  /// Whether its server is asked for the name.
  ///
  /// Then the name depends on the answer: a name that the user can see comes first, and an
  /// unsuitable one fails this file alone.
  var asksForName: Bool { source.asksForName }

  /// Whether the user has not chosen the name: an unsuitable one fails this file alone.
  var isNamedByOthers: Bool { asksForName || nameSource.isOfServer }

  /// Whether neither its URL nor its server has given it a name.
  var isNameless: Bool { asksForName && (name.isEmpty || name.hasFinalSlash) }

  /// Whether the next run of its session asks its server again.
  fileprivate var awaitsName: Bool { isNameless || failure != nil && questionFailure != nil }

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
    case .noName: nameSource = .urlAfterAnswer
    case .failure(let cause): questionFailure = cause
    }
    if isNameless { fail(.isNameless) }
  }

  /// Keeps the name of its URL, without a question; a file of a session fails if that has none.
  mutating func keepNameOfURL() {
    if isNameless { fail(.isNameless.keptBySession) } else { source.asksForName = false }
  }

  /// Makes it fail without a request.
  ///
  /// If the question for its name has failed, that is the cause: with its answer, the file might
  /// have another name.
  mutating func fail(_ failure: JobFailure) {
    self.failure = questionFailure.map(failure.after) ?? failure
  }

  /// Keeps it out of sessions, also if it is one whose server can be asked again.
  mutating func excludeFromSession() { isExcluded = true }

  /// Says if the session does not keep it.
  mutating func noteSession() {
    if !canResume { failure = failure?.outsideSession }
  }

  /// Takes everything that a command says about the same file, except its place and the source of
  /// its name; a file that has no name yet takes one of the user.
  ///
  /// Mirrors, header fields and limits are those of the command: mixed with those of the session,
  /// a secret could reach another server. A check that the command does not name stays, because
  /// none may be lost without a word; but another checksum means another content.
  mutating func update(from new: SessionEntry) {
    let old = source
    if keepsPlace(before: new) {
      source = new.source
      source.asksForName = !isOfSession
    } else {
      self = new
    }
    isStored = true
    isContinued = true
    isLengthNamed = new.source.length != nil
    arePiecesNamed = new.source.pieces != nil
    guard new.source.checksum == nil || new.source.checksum == old.checksum else { return }
    source.checksum = old.checksum
    source.length = new.source.length ?? old.length
    source.pieces = new.source.pieces ?? old.pieces
  }

  /// Takes a checksum of the user.
  ///
  /// If the session has another one, what else it says of the content is of another content.
  mutating func take(_ checksum: Checksum) {
    if isStored, source.checksum != checksum {
      if !isLengthNamed { source.length = nil }
      if !arePiecesNamed { source.pieces = nil }
    }
    source.checksum = checksum
  }

  /// Sets the path that the user named.
  mutating func place(at path: String) {
    name = Self.withoutDoubledSlashes(path)
  }

  /// Puts the file into a directory that the user named, under its own name.
  mutating func place(in directory: String) {
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

  /// Equal for all paths of one file.
  var place: PathKey { PathKey(AbsolutePath.of(path)) }

  /// Whether a command does not change its place, which is only a directory if it has no name yet.
  private func keepsPlace(before new: SessionEntry) -> Bool { isOfSession || new.asksForName }

  /// Whether it keeps another place than the one that a command gives the same file, whose name may
  /// still be unknown.
  func keepsOtherPlace(than new: SessionEntry) -> Bool {
    keepsPlace(before: new)
      && (new.asksForName ? directoryPlace != new.directoryPlace : place != new.place)
  }

  /// Equal for all paths of the directory of one file.
  var directoryPlace: PathKey {
    let path = path
    let end = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) }
    return PathKey(AbsolutePath.of(String(path[..<(end ?? path.startIndex)])))
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
  /// A file of both keeps the place and the source of its name that the session has; all else comes
  /// from `entries`.
  ///
  /// - Parameters:
  ///   - entries: those of the command line.
  ///   - warns: whether to report ignored parts of the file, and ignored places of `entries`.
  /// - Returns: all entries.
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
    let list: SourceList
    do throws(SourceListError) {
      list = try SourceListReader.parse(bytes, sourceName: path, rules: .local)
    } catch {
      throw CommandFailure(messages: error.description.split(separator: "\n").map(String.init))
    }
    if warns { printWarnings(of: list) }
    // A killed process of an earlier version may have left the heading alone.
    guard !list.entries.isEmpty || !entries.isEmpty else {
      throw CommandFailure("the session '\(path)' has no downloads; name URLs or a list")
    }
    let merge = SessionMerge(list.entries.map { SessionEntry(stored: $0) }, with: entries)
    if warns { merge.printWarning() }
    return merge.entries
  }

  /// The maximum number of bytes of a reason: the mirrors of a file can have a thousand.
  private static let maximumReasonByteCount = 1 << 10

  /// The comment on the state of a file.
  private static func comment(_ state: String, _ reason: String?) -> String {
    guard let reason else { return "# \(state)" }
    let isLong = reason.utf8.count > maximumReasonByteCount
    let start = String(decoding: reason.utf8.prefix(maximumReasonByteCount), as: UTF8.self)
    return "# \(state): \(isLong ? start + "…" : reason)"
  }

  /// The text of a session.
  ///
  /// - Parameter items: the unfinished entries with their states and reasons.
  /// - Returns: a list, with the states in comments.
  static func text(of items: [(entry: SessionEntry, state: String, reason: String?)]) -> String {
    var text = "\(heading); go on with: httpfs get --session FILE\n"
    for item in items {
      text += "\n\(comment(item.state, item.reason))\n"
      text +=
        ([item.entry.source.url] + item.entry.source.mirrors).map(\.text)
        .joined(separator: "\t") + "\n"
      text += "  out=\(item.entry.sessionPath)\n"
      if item.entry.awaitsName {
        text += "  named-by=nobody\n"
      } else if item.entry.nameSource.isOfResponse {
        text += "  named-by=server\n"
      }
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
    let items = entries.filter(\.canResume)
    let state = TransferProgress.State.queued.rawValue
    if !items.isEmpty { try write(items.map { (entry: $0, state: state, reason: nil) }) }
  }

  /// How many bytes a second are written on average.
  private static let bytesPerSecond = 512 << 10

  /// Writes the file if something has changed, a long file less often; removes it if nothing is
  /// left.
  func keep(_ board: TransferBoard, isEnd: Bool) {
    do throws(CommandFailure) {
      if isEnd || board.changeCount != lastChangeCount && .now >= nextWrite {
        let items = Self.items(entries, board)
        // A file that has ended does not come back.
        if items.isEmpty { try file.store.remove() } else { try write(items) }
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
