internal import HTTPTransferCore

/// Which bytes of a version are present, which await the hash of their piece, and which memory
/// holds.
///
/// Memory holds bytes (`spill`) that the cache could not store. They are present or belong to a
/// piece that has not been hashed; all other such bytes are in the cache. Each method that makes
/// bytes absent removes them from the spill, too: memory is read before the cache, and would still
/// return bytes that were found wrong.
struct ContentMap: Sendable {
  /// The complete length in bytes; nil until ``learn(length:)``.
  private(set) var length: Int64?
  /// The bytes that are present.
  private(set) var extents: ExtentSet
  /// The arrived bytes of pieces that have not been hashed, which are not in `extents`; nil if the
  /// list has no piece hashes.
  private(set) var pieces: PieceTable?
  /// The bytes that memory holds because the cache could not store them: present ones, or ones that
  /// await their hash.
  private(set) var spill: Spill?
  /// The end that `stat` has shown while the length was unknown: whole pages, which were present.
  private var shownEnd: Int64 = 0
  /// How many bodies of unknown length in a row have ended before bytes that are present.
  private var shortBodyCount = 0

  /// The unit in which the page cache reads, and with it mmap(2), sendfile(2) and splice(2).
  static let pageByteCount: Int64 = 4096

  init(length: Int64?, extents: ExtentSet) {
    self.length = length
    self.extents = extents
  }

  /// Makes bytes that arrive wait until they match their hash in `hashes`; needs the length.
  mutating func check(_ hashes: PieceHashes) {
    pieces = length.flatMap { PieceTable(hashes: hashes, length: $0) }
  }

  // MARK: Length

  var isComplete: Bool { length.map { extents.byteCount >= $0 } ?? false }

  /// The end of the last byte that is known to exist; the length is never less.
  var presentEnd: Int64 { max(shownEnd, extents.extents.last?.upperBound ?? 0) }

  /// Records the complete length.
  ///
  /// The length is learned once, and is never less than what is present.
  ///
  /// - Returns: whether this call set it.
  mutating func learn(length newLength: Int64) -> Bool {
    guard length == nil, newLength >= presentEnd else { return false }
    length = newLength
    return true
  }

  /// Whether the server insists that the file ends before bytes that it has sent: they are of
  /// another version.
  var isEndedShort: Bool { shortBodyCount > FetchConstants.doubtfulAnswerLimit }

  /// Records a body that ended at `position`, before bytes that are present.
  ///
  /// - Returns: what that means for the file.
  mutating func recordShortBody(to position: Int64) -> FileError {
    shortBodyCount += 1
    let reason = "the body has ended after \(position) bytes, though \(presentEnd) are known"
    return FileError(isEndedShort ? .stale : .invalidResponse, reason)
  }

  /// Extends the size that `stat` shows of a file of unknown length, and returns it.
  ///
  /// The size covers the pages that are present in order from the start of the file, and never
  /// shrinks.
  mutating func show() -> Int64 {
    shownEnd = max(
      shownEnd, extents.presentEnd(from: 0) / Self.pageByteCount * Self.pageByteCount)
    return shownEnd
  }

  // MARK: Ranges

  /// The bytes of `range` that exist, if the length is known; otherwise all of it.
  func clamped(_ range: ByteRange) -> ByteRange {
    guard let length else { return range }
    return min(range.lowerBound, length)..<min(range.upperBound, length)
  }

  /// The bytes that must arrive before a read of `range` is answered: a hashed piece is shown only
  /// as a whole.
  func needed(for range: ByteRange) -> ByteRange {
    pieces?.wholePieces(around: clamped(range)) ?? clamped(range)
  }

  /// The parts of `range` that have not arrived, and that a writer therefore stores.
  func absent(in range: ByteRange) -> [ByteRange] {
    pieces?.holes(in: range, extents: extents) ?? extents.holes(in: range)
  }

  /// The bytes that need not be requested.
  var settled: ExtentSet { pieces?.settled(with: extents) ?? extents }

  /// Whether bytes are still missing that can be fetched.
  var isWanting: Bool { pieces?.isWanting(extents: extents) ?? true }

  /// The end of the bytes with which a read of `range`, which is clamped, can be answered now; nil
  /// if it must wait.
  ///
  /// A file of unknown length is served while it grows: a part of the range is better than a wait
  /// for all of it. But the kernel takes a short answer for the end of the file, and fills its page
  /// with zeros; a read of bytes that `stat` has shown is therefore never answered in part.
  func answerableEnd(of range: ByteRange) -> Int64? {
    if range.isEmpty { return range.upperBound }
    let end = min(extents.presentEnd(from: range.lowerBound), range.upperBound)
    if end == range.upperBound { return end }
    guard length == nil, end > range.lowerBound, end >= shownEnd else { return nil }
    return end
  }

  /// Whether a read of `range` can be answered now; if the file is growing, also in part.
  func canAnswer(_ range: ByteRange) -> Bool { answerableEnd(of: clamped(range)) != nil }

  /// The next offset after `position` at which bytes that arrive in order within `range` complete a
  /// piece that a read of `wanted` needs; nil if there is none.
  func nextPieceEnd(of wanted: ByteRange, in range: ByteRange, after position: Int64) -> Int64? {
    guard let pieces else { return nil }
    let wanted = clamped(wanted)
    let lower = max(wanted.lowerBound, position)
    guard wanted.upperBound > range.lowerBound, lower < range.upperBound, !wanted.isEmpty else {
      return nil
    }
    let end = min(pieces.wholePieces(around: lower..<(lower + 1)).upperBound, range.upperBound)
    return end > position ? end : nil
  }

  // MARK: Receiving

  /// Records stored bytes that `carrier` brought from the server `mirror`; pieces must be
  /// hashed before their bytes are shown.
  ///
  /// - Returns: how many bytes are new, and the pieces that have become complete.
  mutating func insert(
    _ range: ByteRange, from mirror: Int, by carrier: PieceTable.Carrier
  ) -> (byteCount: Int64, checks: [PieceTable.Check]) {
    let (byteCount, checks) =
      pieces?.note(range, from: mirror, by: carrier, extents: extents)
      ?? (extents.insert(range), [])
    // Drop from memory what does not count, because another request fetches the piece alone.
    if pieces != nil { forgetAbsentSpill(in: range) }
    if byteCount > 0 { shortBodyCount = 0 }
    return (byteCount, checks)
  }

  /// Records a compared hash; `trusted` are the servers that have not been refused.
  mutating func settle(
    _ check: PieceTable.Check, matches: Bool, trusted: [Int]
  ) -> PieceTable.Outcome {
    guard let outcome = pieces?.settle(check, matches: matches, trusted: trusted) else {
      return .outdated
    }
    if outcome == .verified { extents.insert(check.range) }
    forgetAbsentSpill(in: check.range)
    return outcome
  }

  /// Makes a wrong piece absent as a whole, so that the request `id` fetches it again.
  mutating func restart(piece index: Int, by id: SegmentID) {
    guard let range = pieces?.restart(piece: index, by: id.rawValue) else { return }
    forgetAbsentSpill(in: range)
  }

  /// Allows requests for lost pieces again.
  mutating func forgive() { pieces?.forgive() }

  // MARK: Lost pieces

  /// Takes `range` for absent, whether it was present or awaited its hash.
  ///
  /// - Returns: how many bytes those were.
  @discardableResult
  mutating func forget(_ range: ByteRange) -> Int64 {
    let byteCount = extents.remove(range) + (pieces?.forget(range) ?? 0)
    forgetAbsentSpill(in: range)
    return byteCount
  }

  /// Takes the bytes of `range` that await their hash for absent: no reader has seen them.
  mutating func forgetUnverified(_ range: ByteRange) {
    pieces?.forget(range)
    forgetAbsentSpill(in: range)
  }

  /// Removes absent bytes of `range` from memory.
  private mutating func forgetAbsentSpill(in range: ByteRange) {
    for run in spill?.extents.runs(in: range) ?? [] {
      for hole in absent(in: run) { spill?.forget(hole) }
    }
  }

  /// Makes `cached` what the cache holds; bytes that are present in memory stay.
  ///
  /// A piece that has not been hashed stays if only memory holds it. Any other unhashed piece
  /// begins again: a part of it may be gone, or present already.
  mutating func setCached(_ cached: ExtentSet) {
    let spilled = spill?.extents ?? ExtentSet()
    let kept = spilled.extents.flatMap { extents.runs(in: $0) }
    if let pieces {
      var elsewhere = cached
      for extent in extents.extents + pieces.arrived.extents {
        for run in spilled.holes(in: extent) { elsewhere.insert(run) }
      }
      for extent in elsewhere.extents { self.pieces?.forget(pieces.wholePieces(around: extent)) }
    }
    // Before the cached bytes become present: memory is read first, and may have wrong bytes there.
    extents = ExtentSet(kept)
    forgetAbsentSpill(in: 0..<Int64.max)
    for extent in cached.extents { extents.insert(extent) }
  }

  // MARK: Memory

  /// Begins to spill into `file`, unless the version has a spill file already.
  ///
  /// - Returns: the spill file of the version.
  mutating func beginSpill(into file: SpillFile) -> SpillFile {
    let begun = spill ?? Spill(file: file)
    spill = begun
    return begun.file
  }

  /// Records `runs`, which memory has taken.
  mutating func recordSpilled(_ runs: [ByteRange]) {
    for run in runs { spill?.insert(run) }
  }

  /// Keeps the bytes of `range` that memory holds until the lease ends.
  mutating func beginLease(of range: ByteRange) -> SpillClaim? {
    spill?.beginLease(of: range)
  }

  mutating func endLease(_ claim: SpillClaim) {
    if spill?.file === claim.file { spill?.endLease(claim.number) }
  }

  /// Drops the bytes of `range` that memory holds, unless a reply is reading some of them.
  ///
  /// Bytes of `range` that the cache holds stay.
  ///
  /// - Returns: whether they were dropped.
  mutating func giveUpSpilled(_ range: ByteRange) -> Bool {
    guard let runs = spill?.extents.runs(in: range), spill?.remove(range) == true else {
      return false
    }
    for run in runs { forget(run) }
    return true
  }

  /// Takes all bytes in memory for absent; replies that are reading them hold the file.
  ///
  /// - Returns: whether there were any.
  mutating func dropSpill() -> Bool {
    guard let dropped = spill else { return false }
    spill = nil
    for extent in dropped.extents.extents { forget(extent) }
    return true
  }

  /// How many bytes are present in memory.
  var spilledByteCount: Int64 {
    (spill?.extents.extents ?? []).reduce(0) { count, extent in
      extents.runs(in: extent).reduce(count) { $0 + $1.byteCount }
    }
  }

  /// Whether the cache holds any of the present bytes.
  var isInCache: Bool { extents.byteCount > spilledByteCount }
}
