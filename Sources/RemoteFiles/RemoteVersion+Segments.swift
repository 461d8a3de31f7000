internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// What becomes of the requests for bytes of a version; on the network thread, or the storage queue.
extension RemoteVersion {
  /// Enters a request that a probe of the server has brought: the first bytes of the file, or
  /// the whole of it.
  func adoptSegment(
    range: ByteRange, isWhole: Bool, transfer: ExchangeID, mirror: Int
  ) -> SegmentID {
    let id = state.withLock {
      $0.version.adoptSegment(
        range: range, isWhole: isWhole, transfer: transfer, mirror: mirror, now: .now)
    }
    environment.watch(self)
    return id
  }

  /// The parts of `range` that are absent: what a writer stores of what it has.
  func holes(in range: ByteRange) -> [ByteRange] {
    state.withLock { $0.version.absent(in: range) }
  }

  /// The server has answered a range with the whole representation.
  ///
  /// - Returns: whether to take the whole from now on; false where the range is to be tried again,
  ///   because ranges have worked before and this may be one server's fault of many.
  func rangeIgnored(_ id: SegmentID) -> Bool {
    var takesWhole = false
    change { takesWhole = $0.rangeIgnored(id, into: &$1) }
    return takesWhole
  }

  /// Something has become of a request.
  func note(_ event: SegmentEvent, of id: SegmentID) {
    state.withLock { $0.version.note(event, of: id, now: .now) }
  }

  func supersede() { change { $0.supersede(into: &$1) } }

  /// - Returns: whether nobody reads or fetches it; if so, it is superseded.
  func supersedeIfUnused() -> Bool {
    state.withLock { guarded in
      guard guarded.isUnused else { return false }
      guarded.version.supersedeUnused()
      return true
    }
  }

  /// The server has confirmed this version after all (a host of several that disagree).
  func reinstate() { state.withLock { $0.version.reinstate() } }

  /// Whether the server is bringing bytes by another request than `id`.
  func isServed(besides id: SegmentID) -> Bool {
    state.withLock { $0.version.segments.isServed(besides: id) }
  }

  func noteRoundTrip(_ duration: Duration) {
    let seconds = duration / .seconds(1)
    state.withLock { $0.version.noteRoundTrip(seconds) }
  }

  /// Fails whatever waits: the mount ends.
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
        sparePatience: { mirror in
          guard let mirrors, mirrors.hasReady(besides: mirror, now: now) else { return nil }
          return mirrors.patience(settings.responsePatience, with: mirror, now: now)
        }, into: &$1)
      failure = $1.failures.first?.error
    }
    if let failure { file.noteFailure(failure, isRetried: false) }
  }
}
