internal import HTTPTransferCore

/// Which bytes of a version are present, which have arrived and wait for the hash of their piece, and which of
/// them memory holds because the cache could not take them.
///
/// What memory holds (`spill`) is present or has arrived of a piece; all else that is, is in the cache.
/// Whatever makes bytes absent keeps that true, here: memory is asked before the cache, and would go on to
/// give out what was found wrong.
struct ContentMap: Sendable {
  /// The complete length in bytes; nil until ``learn(length:)``.
  private(set) var length: Int64?
  /// What is present.
  private(set) var extents: ExtentSet
  /// What has arrived of pieces that are to be hashed first, and is not in `extents`; nil where the list
  /// has no hashes of pieces.
  private(set) var pieces: PieceTable?
  /// What lies in memory because the cache could not take it: a part of what is present or has arrived.
  private(set) var spill: Spill?
  /// Up to where `stat` has shown the file while its length was unknown: whole pages, which were present.
  private var shownEnd: Int64 = 0
  /// How often in a row a body of unknown length has ended before bytes that are present.
  private var shortBodyCount = 0

  /// What the kernel's page cache, and with it mmap(2), sendfile(2) and splice(2), reads at once.
  static let pageByteCount: Int64 = 4096

  init(length: Int64?, extents: ExtentSet) {
    self.length = length
    self.extents = extents
  }

  /// Has what arrives hashed by `hashes` before anybody sees it; needs the length.
  mutating func check(_ hashes: PieceHashes) {
    pieces = length.flatMap { PieceTable(hashes: hashes, length: $0) }
  }

  // MARK: Length

  var isComplete: Bool { length.map { extents.byteCount >= $0 } ?? false }

  /// The end of the last byte that is known to be there: no length is less.
  var presentEnd: Int64 { max(shownEnd, extents.extents.last?.upperBound ?? 0) }

  /// The complete length has become known.
  ///
  /// It is learned once, and is never less than what is present.
  ///
  /// - Returns: whether it has been learned now.
  mutating func learn(length newLength: Int64) -> Bool {
    guard length == nil, newLength >= presentEnd else { return false }
    length = newLength
    return true
  }

  /// Whether the server insists that the file ends before bytes that it has sent: they are of another one.
  var isEndedShort: Bool { shortBodyCount > FetchConstants.doubtfulAnswerLimit }

  /// A body has ended at `position`, before bytes that are present.
  ///
  /// - Returns: what that says of the file.
  mutating func noteShortBody(to position: Int64) -> FileError {
    shortBodyCount += 1
    let reason = "the body has ended after \(position) bytes, though \(presentEnd) are known"
    return FileError(isEndedShort ? .stale : .invalidResponse, reason)
  }

  /// Up to where `stat` shows a file of unknown length from now on: the pages that are present in order from
  /// its start, and never less than before.
  mutating func show() -> Int64 {
    shownEnd = max(
      shownEnd, extents.presentEnd(from: 0) / Self.pageByteCount * Self.pageByteCount)
    return shownEnd
  }

  // MARK: Ranges

  /// The bytes of `range` that exist, as far as the length is known.
  func clamped(_ range: ByteRange) -> ByteRange {
    guard let length else { return range }
    return min(range.lowerBound, length)..<min(range.upperBound, length)
  }

  /// What must arrive before a read of `range` is answered: a piece that is hashed first is shown as a whole.
  func needed(for range: ByteRange) -> ByteRange {
    pieces?.wholePieces(around: clamped(range)) ?? clamped(range)
  }

  /// The parts of `range` that have not arrived: what a writer stores of what it has.
  func absent(in range: ByteRange) -> [ByteRange] {
    pieces?.holes(in: range, extents: extents) ?? extents.holes(in: range)
  }

  /// What need not be asked for.
  var settled: ExtentSet { pieces?.settled(with: extents) ?? extents }

  /// Whether bytes are still to come, of pieces that can be had.
  var isWanting: Bool { pieces?.isWanting(extents: extents) ?? true }

  /// The end of what a read of `range`, which is clamped, is answered with now; nil where it must wait.
  ///
  /// A file of unknown length is served while it grows: what is there of the range is better than waiting for
  /// all of it. But the kernel takes less than it has asked for as the end of the file, and fills its page with
  /// zeros: what `stat` has shown is never answered in part.
  func answerableEnd(of range: ByteRange) -> Int64? {
    if range.isEmpty { return range.upperBound }
    let end = min(extents.presentEnd(from: range.lowerBound), range.upperBound)
    if end == range.upperBound { return end }
    guard length == nil, end > range.lowerBound, end >= shownEnd else { return nil }
    return end
  }

  /// Whether a read of `range` can be answered now; of a growing file, also in part.
  func canAnswer(_ range: ByteRange) -> Bool { answerableEnd(of: clamped(range)) != nil }

  /// Where bytes that arrive in order, beyond `position` and within `range`, next make whole what a read of
  /// `wanted` needs; nil where they do not.
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

  // MARK: Arrival

  /// Bytes have been stored, which `carrier` has brought from the server `mirror`; of pieces, they are to be
  /// hashed before anybody sees them.
  ///
  /// - Returns: how many are new, and the pieces that are whole now.
  mutating func insert(
    _ range: ByteRange, from mirror: Int, by carrier: PieceTable.Carrier
  ) -> (byteCount: Int64, checks: [PieceTable.Check]) {
    let (byteCount, checks) =
      pieces?.note(range, from: mirror, by: carrier, extents: extents)
      ?? (extents.insert(range), [])
    // Of a piece that another request is to bring alone, memory keeps nothing.
    if pieces != nil { forgetAbsentSpill(in: range) }
    if byteCount > 0 { shortBodyCount = 0 }
    return (byteCount, checks)
  }

  /// The hash of a piece has been compared; `trusted` are the servers that have not been refused.
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

  /// A piece that was wrong is asked for again, as a whole.
  mutating func restart(piece index: Int, by id: SegmentID) {
    guard let range = pieces?.restart(piece: index, by: id.rawValue) else { return }
    forgetAbsentSpill(in: range)
  }

  /// Lets what was lost be tried again.
  mutating func forgive() { pieces?.forgive() }

  // MARK: Loss

  /// Takes `range` for absent, be it present or arrived of a piece.
  ///
  /// - Returns: how many bytes it was.
  @discardableResult
  mutating func forget(_ range: ByteRange) -> Int64 {
    let byteCount = extents.remove(range) + (pieces?.forget(range) ?? 0)
    forgetAbsentSpill(in: range)
    return byteCount
  }

  /// Takes what has arrived of `range` for absent, as far as nobody has seen it yet.
  mutating func forgetUnverified(_ range: ByteRange) {
    pieces?.forget(range)
    forgetAbsentSpill(in: range)
  }

  /// What is absent of `range` is not in memory either.
  private mutating func forgetAbsentSpill(in range: ByteRange) {
    for run in spill?.extents.runs(in: range) ?? [] {
      for hole in absent(in: run) { spill?.forget(hole) }
    }
  }

  /// Makes `cached` what the cache holds; what is present in memory stays.
  ///
  /// A piece that nobody has hashed yet stays where memory alone holds it. Of any other a part may have
  /// gone, or be there already: it begins anew.
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
    // Before what the cache holds is present: memory is asked first, and may be wrong about that.
    extents = ExtentSet(kept)
    forgetAbsentSpill(in: 0..<Int64.max)
    for extent in cached.extents { extents.insert(extent) }
  }

  // MARK: Memory

  /// Has bytes put into `file`, unless there is a file for them already.
  ///
  /// - Returns: the file that takes them.
  mutating func beginSpill(into file: SpillFile) -> SpillFile {
    let begun = spill ?? Spill(file: file)
    spill = begun
    return begun.file
  }

  /// Memory has taken `runs`.
  mutating func noteSpilled(_ runs: [ByteRange]) {
    for run in runs { spill?.insert(run) }
  }

  /// Keeps what memory has of `range` until the lease ends.
  mutating func beginLease(of range: ByteRange) -> SpillClaim? {
    spill?.beginLease(of: range)
  }

  mutating func endLease(_ claim: SpillClaim) {
    if spill?.file === claim.file { spill?.endLease(claim.number) }
  }

  /// Gives up what memory has of `range`, unless a reply is reading some of it; what the cache holds of it
  /// stays.
  ///
  /// - Returns: whether it is gone.
  mutating func giveUpSpilled(_ range: ByteRange) -> Bool {
    guard let runs = spill?.extents.runs(in: range), spill?.remove(range) == true else {
      return false
    }
    for run in runs { forget(run) }
    return true
  }

  /// Takes what lies in memory for absent; replies that read it just now hold its file.
  ///
  /// - Returns: whether anything did.
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

  /// Whether anything is present that the cache is to hold.
  var isInCache: Bool { extents.byteCount > spilledByteCount }
}
