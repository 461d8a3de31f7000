internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// What the writer of one segment tells its version.
struct SegmentFeed: Sendable {
  let owner: RemoteVersion
  let id: SegmentID

  /// Makes the writer of a segment known to those who will wait for its bytes.
  func begin(_ flush: @escaping VersionHoldings.Flush) {
    owner.state.withLock { $0.flushes[id] = flush }
  }

  /// Bytes up to `position` have arrived; nil if the segment is no longer wanted.
  func advance(to position: Int64) -> WriterAdvice? {
    let advice = owner.state.withLock { guarded -> WriterAdvice? in
      guarded.version.noteDisk(isShort: owner.environment.isDiskShort)
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

  /// Bytes before those that a request is to bring have arrived.
  func skipped(to position: Int64) {
    owner.state.withLock { $0.version.skipped(id, to: position, now: .now) }
  }

  /// Bytes that have arrived are on their way into the cache.
  func handedOver(_ range: ByteRange) {
    owner.state.withLock {
      $0.storeCount += 1
      $0.version.note(.handedOver(to: range.upperBound), of: id, now: .now)
    }
  }

  /// What was handed over is stored, or could not be.
  func storeEnded() { owner.state.withLock { $0.storeCount -= 1 } }

  /// A request has ended; what it has brought is stored soon.
  func requestEnded() {
    owner.state.withLock {
      $0.version.note(.ended, of: id, now: .now)
      // It has handed over all that it had.
      $0.flushes[id] = nil
      // A mount may know thousands of versions that fetch nothing.
      if $0.flushes.isEmpty { $0.flushes = [:] }
    }
  }

  /// Call before pausing a request that is far ahead of its reader.
  ///
  /// - Returns: whether to pause it; it is then resumed when the reader comes near.
  func awaitsReader() -> Bool {
    var awaits = false
    owner.change { awaits = $0.awaitsReader(id, now: .now, into: &$1) }
    return awaits
  }

  /// Something has become of the request.
  func note(_ event: SegmentEvent) { owner.note(event, of: id) }
}
