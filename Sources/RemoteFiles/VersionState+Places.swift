internal import HTTPTransferCore

/// Taking bytes back that were there, wherever they lie.
///
/// What memory holds (`spill`) is present or has arrived of a piece; all else that is, is in the cache.
/// Whatever makes bytes absent keeps that true, here: memory is asked before the cache, and would go on to
/// give out what was found wrong.
extension VersionState {
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
  mutating func forgetAbsentSpill(in range: ByteRange) {
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

  /// Takes what lies in memory for absent; replies that read it just now hold its file.
  mutating func dropSpill() {
    guard let dropped = spill else { return }
    spill = nil
    for extent in dropped.extents.extents { forget(extent) }
    readAheadLimit = nil
  }

  /// Bounds how far may be read ahead, because memory must hold it; nil where the cache takes bytes again.
  mutating func limitReadAhead(to byteCount: Int64?) { readAheadLimit = byteCount }

  /// Memory has taken `runs`.
  mutating func noteSpilled(_ runs: [ByteRange]) {
    for run in runs { spill?.insert(run) }
    limitReadAhead(to: SpillMemory.readAheadByteCount)
  }

  /// Has bytes put into `file`, unless there is a file for them already.
  ///
  /// - Returns: the file that takes them.
  mutating func beginSpill(into file: SpillFile) -> SpillFile {
    let begun = spill ?? Spill(file: file)
    spill = begun
    return begun.file
  }

  /// Keeps what memory has of `range` until the lease ends.
  mutating func beginLease(of range: ByteRange) -> SpillLease.Claim? {
    spill?.beginLease(of: range)
  }

  mutating func endLease(_ claim: SpillLease.Claim) {
    if spill?.file === claim.file { spill?.endLease(claim.number) }
  }

  /// Gives up what memory has of `range`, unless somebody reads or waits for some of it; what the cache holds
  /// of it stays.
  ///
  /// - Returns: whether it is gone.
  mutating func giveUpSpilled(_ range: ByteRange, now: ContinuousClock.Instant) -> Bool {
    guard !mustKeep(range, now: now), let runs = spill?.extents.runs(in: range),
      spill?.remove(range) == true
    else { return false }
    for run in runs { forget(run) }
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
