internal import HTTPTransferCore

/// Where bytes that arrive go.
extension TransferDriver {
  /// Bytes have arrived; where the segment is to end, nil where nobody wants them.
  func advance(_ id: Int, to position: Int64, now: ContinuousClock.Instant) -> Int64? {
    guard phase == .running else { return nil }
    return table.advance(id, to: position, now: now)
  }

  /// How much is gathered before it is written: 512 KiB, less where many exchanges gather, so that a
  /// crash loses little.
  var gatherByteCount: Int {
    guard sink.isRandomAccess else { return 16 << 10 }
    let share = (3 << 20) / max(1, exchanges.count)
    return max(64 << 10, min(BufferPool.bufferByteCount, share))
  }

  /// Stores what is absent of a run of bytes.
  ///
  /// - Returns: why that failed.
  func store(
    _ bytes: UnsafeRawBufferPointer, at start: Int64, by id: Int, of mirror: Int,
    now: ContinuousClock.Instant
  ) -> TransferError? {
    let range = ByteRange(offset: start, byteCount: Int64(bytes.count))
    beginPieces()
    do throws(FileFailure) {
      for hole in table.holes(in: range.clamped(to: table.target)) {
        let slice = bytes[Int(hole.lowerBound - start)..<Int(hole.upperBound - start)]
        try sink.write(
          UnsafeRawBufferPointer(rebasing: slice), at: hole.lowerBound - table.target.lowerBound)
      }
    } catch {
      return transferError(error)
    }
    let added = table.stored(
      id, range.clamped(to: table.target), idle: client.idleSeconds, now: now)
    disconnectedSince = nil
    if added > 0 { monitor.emit(.received(byteCount: added)) }
    if mirrors.count > 1 {
      wholeCheck.noteStored(from: mirror)
      mirrors.answered(mirror)
      mirrors.measured(mirror, bytesPerSecond: table[id]?.rate(now: now))
    }
    if pieces != nil {
      noteArrival(of: range.clamped(to: table.target), from: mirror)
      verifyPieces()
    }
    plan()
    return nil
  }
}
