import HTTPTransferCore

/// Parses a list that arrives in pieces; keeps at most one line of its text.
///
/// Call ``consume(_:)`` with the pieces in order, then ``finish()`` once.
package struct SourceListParser {
  private let sourceName: String
  private let tree: Bool
  private let rules: PathRules
  private let listings: ListingRule
  private let naming: NamingRule

  /// Whether we wrote the list: what it holds has passed the limits before, and some may clash.
  private var isOwn: Bool { rules == .local }

  private var entries: [SourceEntry] = []
  private var paths = PathTable()
  /// The paths that are directory listings.
  private var listingPaths: Set<PathKey> = []
  private var errors: [SourceDiagnostic] = []
  private var warnings = WarningLog()

  /// Whether the maximum number of errors is reached; the rest of the list is skipped.
  private(set) var isStopped = false

  private var lineNumber = 0

  /// The start of a line whose end has not arrived yet.
  private var partialLine: [UInt8] = []

  /// Whether the current line exceeds the limit, so that its bytes are dropped.
  private var isDroppingLine = false

  /// The meaning of the next option line.
  private enum Context {
    /// No URL has been read yet.
    case start
    /// Options may follow for this entry.
    case entry(PendingEntry)
    /// The URL was malformed; its options are skipped without an error.
    case skipping
  }
  private var context = Context.start

  package init(
    sourceName: String, tree: Bool, rules: PathRules = .mount, listings: ListingRule = .never,
    naming: NamingRule = .byURL
  ) {
    self.sourceName = sourceName
    self.tree = tree
    self.rules = rules
    self.listings = listings
    self.naming = naming
  }

  // MARK: Splitting lines

  /// Takes the next bytes of the list.
  package mutating func consume(_ bytes: ArraySlice<UInt8>) {
    var rest = bytes
    while !isStopped, let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
      endLine(with: rest[..<newline])
      rest = rest[(newline + 1)...]
    }
    guard !isStopped, !rest.isEmpty, !isDroppingLine else { return }
    if !isOwn, partialLine.count + rest.count > SourceList.maximumLineByteCount + 1 {
      // Keep one byte more than the limit, for the CR of a line of exactly that length.
      isDroppingLine = true
      partialLine = []
    } else {
      partialLine += rest
    }
  }

  private mutating func endLine(with bytes: ArraySlice<UInt8>) {
    lineNumber += 1
    let wasDropping = isDroppingLine
    isDroppingLine = false
    if wasDropping {
      failLineTooLong()
    } else if partialLine.isEmpty {
      takeLine(bytes)
    } else {
      partialLine += bytes
      let line = partialLine
      partialLine.removeAll(keepingCapacity: true)
      takeLine(line[...])
    }
  }

  private mutating func failLineTooLong() {
    startSkipping()
    fail(line: lineNumber, "a line of more than \(SourceList.maximumLineByteCount) bytes")
  }

  private mutating func takeLine(_ bytes: ArraySlice<UInt8>) {
    var line = bytes
    if lineNumber == 1 {
      if line.starts(with: [0xFF, 0xFE]) || line.starts(with: [0xFE, 0xFF]) {
        fail(line: 1, "the list is UTF-16; save it as UTF-8")
        isStopped = true
        return
      }
      if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
    }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    guard isOwn || line.count <= SourceList.maximumLineByteCount else { return failLineTooLong() }
    guard let first = line.first else { return }
    let isIndented = first == UInt8(ascii: " ") || first == UInt8(ascii: "\t")
    if isIndented {
      line = line.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      if line.isEmpty { return }
    }
    // The content of a comment does not matter; it need not even be text.
    if line.first == UInt8(ascii: "#") { return }

    if let index = line.firstIndex(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) {
      if !isIndented { startSkipping() }
      let column = index - bytes.startIndex + 1
      return fail(line: lineNumber, "control byte \(hexadecimal(line[index])) in column \(column)")
    }
    guard let text = String(validating: line, as: UTF8.self) else {
      if !isIndented { startSkipping() }
      return fail(line: lineNumber, "bytes that are not UTF-8; save the list as UTF-8")
    }
    if isIndented {
      takeOption(isOwn ? text[...] : trimmingBlanks(text[...]))
    } else {
      takeURLs(text)
    }
  }

  private func hexadecimal(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return byte < 16 ? "0x0\(digits)" : "0x\(digits)"
  }

  // MARK: Parsing entries

  /// Ends the previous entry and ignores the options of the unusable one.
  private mutating func startSkipping() {
    flushEntry()
    context = .skipping
  }

  private mutating func takeURLs(_ text: String) {
    flushEntry()
    guard isOwn || entries.count < SourceList.maximumEntryCount else {
      fail(line: lineNumber, "more than \(SourceList.maximumEntryCount) files in one list")
      isStopped = true
      return
    }
    var first: RemoteURL?
    var mirrors: [RemoteURL] = []
    for field in text.utf8.split(separator: UInt8(ascii: "\t")) {
      let candidate = trimmingBlanks(Substring(field))
      if candidate.isEmpty { continue }
      do {
        let url = try RemoteURL(candidate)
        if first == nil { first = url } else { mirrors.append(url) }
        guard isOwn || mirrors.count < SourceList.maximumURLCount else {
          context = .skipping
          return fail(
            line: lineNumber, "more than \(SourceList.maximumURLCount) URLs of one file")
        }
      } catch {
        context = .skipping
        return fail(line: lineNumber, "malformed URL: \(error)")
      }
    }
    guard let first else { return }
    let entry = PendingEntry(url: first, mirrors: mirrors, line: lineNumber, listings: listings)
    if entry.isListing, !mirrors.isEmpty {
      warn("the mirrors of a directory listing are not used", about: "mirrors of a listing")
    }
    context = .entry(entry)
  }

  private mutating func takeOption(_ text: Substring) {
    guard case .entry(var entry) = context else {
      if case .start = context {
        fail(line: lineNumber, "an indented option line before any URL")
      }
      return
    }
    // Give the entry a single owner, so that its arrays are not copied.
    context = .skipping
    defer { context = .entry(entry) }

    guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
      return fail(line: lineNumber, "an indented line must be an option: name=value")
    }
    let name = String(trimmingBlanks(text[..<equals]))
    let rest = text[text.utf8.index(after: equals)...]
    // Names may begin or end with a blank if the list was not written by hand.
    let value = isOwn ? rest : trimmingBlanks(rest)
    guard SourceOption.isPlausibleName(name) else {
      return fail(
        line: lineNumber,
        "an indented line must be an option, name=value; a URL starts in the first column")
    }
    switch SourceOption(name: name) {
    case .out:
      entry.out = String(value)
      entry.nameLine = lineNumber
    case .directory:
      entry.directory = String(value)
      entry.nameLine = lineNumber
    case .userAgent: entry.userAgent = HeaderField(name: "User-Agent", value: String(value))
    case .referer: entry.setReferer(value)
    case .header:
      guard let field = HeaderField(line: value) else {
        return fail(
          line: lineNumber, "a malformed header; write header=Name: value, the name without spaces")
      }
      if field.isReserved {
        warn("header '\(field.name)' ignored: httpfs sets it itself", about: "h:" + field.name)
      } else if !entry.add(field, isLimited: !isOwn) {
        return fail(
          line: lineNumber,
          "more than \(SourceList.maximumHeaderCount) header= lines, or"
            + " \(SourceList.maximumHeaderByteCount >> 10) KiB of them, for one URL")
      }
    case .checksum:
      guard !entry.isListing else {
        return fail(line: lineNumber, "checksum= is for a file, not for a directory listing")
      }
      do {
        entry.checksum = try Checksum(value)
      } catch {
        fail(line: lineNumber, "\(error)")
      }
    case .length:
      guard let length = Int64(length: value), !entry.isListing else {
        return fail(line: lineNumber, "length= is the number of bytes that a file has")
      }
      entry.length = length
    case .pieces:
      guard !entry.isListing, PieceHashes.append(option: value, to: &entry.pieces) else {
        return fail(
          line: lineNumber,
          "pieces= is ALGORITHM:LENGTH:HEX,HEX…, the same algorithm and length in each line,"
            + " and at most \(PieceHashes.maximumCount) hashes")
      }
    case .rateLimit:
      guard let rate = bytesPerSecond(ofText: String(value)), !entry.isListing else {
        return fail(
          line: lineNumber,
          "max-download-limit= is the bytes per second of a file, as 500K or 10M, or 0 for no limit"
        )
      }
      entry.rateLimit = rate
    case .namer where isOwn: entry.namer = value
    case .ignored: warn("option '\(name)' of aria2 has no effect here", about: name)
    case .namer, .unknown: warn("unknown option '\(name)' ignored", about: name)
    }
  }

  /// Gives the entry its path and appends it to the list.
  private mutating func flushEntry() {
    guard case .entry(let pending) = context else { return }
    context = .skipping
    let path: String
    do {
      path = try pending.path(tree: tree, rules: rules, naming: naming)
    } catch {
      return fail(line: pending.nameLine, error.message(suggestsTree: !tree))
    }
    var entry = pending.entry(path: path)
    entry.asksForName = pending.asksForName(naming) || pending.awaitsName
    // The server may give another name.
    if !isOwn, !entry.asksForName, let other = paths.insert(path, line: pending.line) {
      let earlier = entries.first { $0.line == other }
      let helpsTree = !tree && earlier?.url.hasOtherTreeName(than: entry.url) == true
      return fail(
        line: pending.line,
        "the name '\(path)' is already used in line \(other); give one of the two another name with"
          + (helpsTree ? " out= or use --tree" : " an indented line out=NAME below its URL"))
    }
    if pending.isDirectory { listingPaths.insert(PathKey(path)) }
    entries.append(entry)
  }

  // MARK: Results

  mutating func fail(line: Int?, _ message: String) {
    guard !isStopped else { return }
    errors.append(SourceDiagnostic(sourceName: sourceName, line: line, message: message))
    if errors.count == SourceListError.maximumDiagnosticCount { isStopped = true }
  }

  private mutating func warn(_ message: String, about topic: String) {
    warnings.add(message, about: topic, line: lineNumber)
  }

  /// Ends the list: its last line needs no newline.
  package mutating func finish() throws(SourceListError) -> SourceList {
    if !isStopped, isDroppingLine || !partialLine.isEmpty { endLine(with: []) }
    flushEntry()
    if !isStopped {
      for clash in paths.clashes() {
        fail(
          line: clash.secondLine,
          listingPaths.contains(PathKey(clash.path))
            ? "the name '\(clash.path)' is a directory listing, and other names lie below it, see"
              + " line \(clash.firstLine); give the listing another name with out="
            : "the name '\(clash.path)' is a file and a directory at once, see line"
              + " \(clash.firstLine); give the file another name with out=")
      }
    }
    if !isOwn, entries.isEmpty, errors.isEmpty {
      fail(line: nil, "the list is empty; write one URL a line")
    }
    guard errors.isEmpty else {
      throw SourceListError(
        diagnostics: errors.sorted { ($0.line ?? 0) < ($1.line ?? 0) }, isTruncated: isStopped)
    }
    return SourceList(
      entries: entries, warnings: warnings.diagnostics(sourceName: sourceName))
  }
}
