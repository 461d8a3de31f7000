internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// Passes the events of a segment's writer to its version.
struct SegmentFeed: Sendable {
  let owner: RemoteVersion
  let id: SegmentID

  /// Registers the writer of a segment for the reads that will wait for its bytes.
  func begin(_ flush: @escaping VersionHoldings.Flush) {
    owner.state.withLock { $0.flushes[id] = flush }
  }

  /// Records the arrival of bytes up to `position`; nil if the segment is no longer wanted.
  func advance(to position: Int64) -> WriterAdvice? {
    let advice = owner.state.withLock { guarded -> WriterAdvice? in
      guarded.version.recordDisk(isShort: owner.environment.isDiskShort)
      return guarded.version.advance(
        id, to: position, unreadSince: guarded.openCount == 0 ? guarded.unreadSince : nil,
        now: .now)
    }
    if let rival = advice?.rival { owner.environment.client.cancel(rival) }
    if let mirror = advice?.silentMirror {
      owner.file.mirrors?.failed(mirror, FileError(.timedOut, "another server answered sooner"))
    }
    return advice
  }

  /// Records bytes that arrived before the range of the request.
  func skipped(to position: Int64) {
    owner.state.withLock { $0.version.skipped(id, to: position, now: .now) }
  }

  /// Records bytes that are on their way into the cache.
  func handedOver(_ range: ByteRange) {
    owner.state.withLock {
      $0.storeCount += 1
      $0.version.note(.handedOver(to: range.upperBound), of: id, now: .now)
    }
  }

  /// Records that bytes which were handed over are stored, or could not be.
  func storeEnded() { owner.state.withLock { $0.storeCount -= 1 } }

  /// Records that a request has ended; its last bytes are stored soon.
  func requestEnded() {
    owner.state.withLock {
      $0.version.note(.ended, of: id, now: .now)
      // The writer has handed over all of its bytes.
      $0.flushes[id] = nil
      // Frees the memory: a mount may know thousands of versions that fetch nothing.
      if $0.flushes.isEmpty { $0.flushes = [:] }
    }
  }

  /// Pauses the segment if it is far ahead of its reader; call it before pausing the exchange.
  ///
  /// - Returns: whether to pause the exchange; it is resumed when the reader comes near.
  func awaitsReader() -> Bool {
    var awaits = false
    owner.change { awaits = $0.awaitsReader(id, now: .now, into: &$1) }
    return awaits
  }

  /// Records an event of the request.
  func note(_ event: SegmentEvent) { owner.note(event, of: id) }
}
