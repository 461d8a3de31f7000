internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// How requests for bytes of a version proceed and end; on the network thread or the storage queue.
extension RemoteVersion {
  /// Enters a request of a probe, which brings the first bytes of the file or all of them.
  func adoptSegment(
    range: ByteRange, isWhole: Bool, exchange: ExchangeID, mirror: Int
  ) -> SegmentID {
    transact { guarded, actions in
      actions.needsWatch = true
      return guarded.version.adoptSegment(
        range: range, isWhole: isWhole, exchange: exchange, mirror: mirror, now: .now)
    }
  }

  /// The parts of `range` that are absent, and that a writer therefore stores.
  func holes(in range: ByteRange) -> [ByteRange] {
    state.withLock { $0.version.absent(in: range) }
  }

  /// Handles an answer that brings the whole representation instead of a range.
  ///
  /// - Returns: whether to take the whole from now on; false if the range is to be tried again,
  ///   because ranges have worked before and this may be the fault of one server of many.
  func rangeIgnored(_ id: SegmentID) -> Bool {
    var takesWhole = false
    change { takesWhole = $0.rangeIgnored(id, into: &$1) }
    return takesWhole
  }

  /// Records that a body of unknown length, and with it the file, has ended at `position`; runs
  /// on the storage queue.
  ///
  /// - Returns: why the file cannot end there; nil if it can.
  func ended(at position: Int64) -> FileError? {
    transact { $0.version.ended(at: position, into: &$1) }
  }

  /// Records an event of a request.
  func note(_ event: SegmentEvent, of id: SegmentID) {
    state.withLock { $0.version.note(event, of: id, now: .now) }
  }

  func supersede() { change { $0.supersede(into: &$1) } }

  /// Supersedes the version if it is neither read nor fetched.
  ///
  /// - Returns: whether it was superseded.
  func supersedeIfUnused() -> Bool {
    state.withLock { guarded in
      guard guarded.isUnused else { return false }
      guarded.version.supersedeUnused()
      return true
    }
  }

  /// Reverts ``supersede()``, because the server has confirmed this version (servers of a host may
  /// disagree).
  func reinstate() { state.withLock { $0.version.reinstate() } }

  /// Whether another request than `id` is bringing bytes.
  func isServed(besides id: SegmentID) -> Bool {
    state.withLock { $0.version.segments.isServed(besides: id) }
  }

  func recordRoundTrip(_ duration: Duration) {
    let seconds = duration / .seconds(1)
    state.withLock { $0.version.recordRoundTrip(seconds) }
  }

  /// Fails all waiting reads, because the mount ends.
  func abandon() {
    let error = FileError(.unmounted, "the mount is being taken down")
    change {
      $0.failForGood(error)
      $0.failParked(error, now: .now, into: &$1)
    }
  }

  func postpone(by delay: Duration) { state.withLock { $0.version.postpone(by: delay) } }

  func expire(now: ContinuousClock.Instant) {
    let settings = environment.settings
    var failure: FileError?
    let mirrors = file.mirrors
    let allowance = environment.hedges.withLock {
      $0.allowance(at: file.origins, now: now)
    }
    change {
      $0.expire(
        now: now, settings: settings, hedgeAllowance: allowance,
        spareTimeout: { mirror in
          guard let mirrors, mirrors.hasReady(besides: mirror, now: now) else { return nil }
          return mirrors.timeout(settings.responseTimeout, with: mirror, now: now)
        }, into: &$1)
      failure = $1.failures.first?.error
    }
    if let failure { file.recordFailure(failure, isRetried: false) }
  }
}
