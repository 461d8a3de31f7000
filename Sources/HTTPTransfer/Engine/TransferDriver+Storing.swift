internal import HTTPTransferCore

/// Where bytes that arrive go.
extension TransferDriver {
  /// Bytes have arrived.
  ///
  /// - Returns: where the segment ends; nil if nobody wants the bytes.
  func advance(_ id: Int, to position: Int64, now: ContinuousClock.Instant) -> Int64? {
    guard phase == .running else { return nil }
    let target = table.parallelism.target
    let end = table.advance(
      id, to: position, idle: client.idleSeconds - store.fullSeconds, now: now)
    endRival(of: id)
    // More connections begin at once, not only when the next buffer is stored.
    if table.parallelism.target > target { plan() }
    return table[id]?.end ?? end
  }

  /// Has the bytes `range`, which an exchange has gathered in a buffer, stored.
  ///
  /// What an exchange of an earlier beginning has gathered is dropped: it may be of another version.
  func handOver(_ handed: HandedBuffer, as range: ByteRange, by exchange: SegmentExchange) {
    guard exchange.generation == generation else { return }
    beginPieces()
    let runs = table.handOver(range)
    let (id, mirror, generation) = (exchange.segmentID, exchange.mirror, generation)
    store.store(handed, at: range.lowerBound, runs: runs, from: table.target.lowerBound) {
      [self] result in
      // The bytes of an earlier beginning have been thrown away since.
      guard generation == self.generation else { return }
      switch result {
      case .success: stored(range, runs: runs, by: id, of: mirror)
      case .failure(let failure): fail(transferError(failure))
      }
    }
  }

  private func stored(_ range: ByteRange, runs: [ByteRange], by id: Int, of mirror: Int) {
    let added = table.stored(id, range, runs: runs, now: .now)
    disconnectedSince = nil
    if added > 0 { monitor.emit(.received(byteCount: added)) }
    if mirrors.count > 1 {
      wholeCheck.noteStored(from: mirror)
      mirrors.answered(mirror)
      mirrors.measured(mirror, bytesPerSecond: table[id]?.rate(now: .now))
    }
    if pieces != nil {
      for run in runs { noteArrival(of: run, from: mirror) }
      verifyPieces()
    }
    plan()
  }
}
