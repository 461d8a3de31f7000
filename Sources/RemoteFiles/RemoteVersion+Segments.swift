internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
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

  /// Makes the writer of a segment known to those who will wait for its bytes.
  func setWriter(_ writer: SegmentWriter, of id: SegmentID) {
    state.withLock { $0.writers[id] = writer }
  }

  /// The parts of `range` that are absent: what a writer stores of what it has.
  func holes(in range: ByteRange) -> [ByteRange] {
    state.withLock { $0.version.absent(in: range) }
  }

  func advance(_ id: SegmentID, to position: Int64) -> WriterAdvice? {
    let advice = state.withLock { guarded -> WriterAdvice? in
      guarded.version.noteDisk(isShort: environment.isDiskShort)
      return guarded.version.advance(
        id, to: position, unreadSince: guarded.openCount == 0 ? guarded.unreadSince : nil,
        now: .now)
    }
    if let rival = advice?.rival { environment.client.cancel(rival) }
    if let mirror = advice?.silentMirror {
      file.mirrors?.failed(mirror, FileError(.timedOut, "another server answered sooner"))
    }
    return advice
  }

  /// Bytes before those that a request is to bring have arrived.
  func skipped(_ id: SegmentID, to position: Int64) {
    state.withLock { $0.version.skipped(id, to: position, now: .now) }
  }

  /// Bytes that have arrived are on their way into the cache.
  func handedOver(_ id: SegmentID, _ range: ByteRange) {
    state.withLock {
      $0.storeCount += 1
      $0.version.note(.handedOver(to: range.upperBound), of: id, now: .now)
    }
  }

  /// What was handed over is stored, or could not be.
  func storeEnded() { state.withLock { $0.storeCount -= 1 } }

  /// A request has ended; what it has brought is stored soon.
  func requestEnded(_ id: SegmentID) {
    state.withLock {
      $0.version.note(.ended, of: id, now: .now)
      // It has handed over all that it had.
      $0.writers[id] = nil
    }
  }

  /// Call before pausing a request that is far ahead of its reader.
  ///
  /// - Returns: whether to pause it; it is then resumed when the reader comes near.
  func awaitsReader(_ id: SegmentID) -> Bool {
    var awaits = false
    change { awaits = $0.awaitsReader(id, now: .now, into: &$1) }
    return awaits
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

  /// A body of unknown length has ended at `position`, and so does the file; on the storage queue.
  ///
  /// - Returns: why the file cannot end there; nil if it can.
  func ended(at position: Int64) -> FileError? {
    let wasKnown = length != nil
    var failure: FileError?
    change { failure = $0.ended(at: position, into: &$1) }
    // Not here: the disk may stand still.
    if !wasKnown, failure == nil { environment.storage.perform { [self] in recordLength() } }
    return failure
  }

  /// Takes the length from the head of a response of this version, if it was unknown.
  func learn(length: Int64?) {
    // Without a validator nothing shows that the head is of these bytes.
    guard let length, content.strength != .unverifiable else { return }
    var isNew = false
    change {
      isNew = $0.learn(length: length, into: &$1)
      if isNew { $0.plan(now: .now, into: &$1) }
    }
    if isNew { environment.storage.perform { [self] in recordLength() } }
  }

  /// Records the length for later mounts; on the storage queue.
  func recordLength() {
    guard let length else { return }
    do throws(CacheError) {
      try bringEntry(create: false)
      guard let entry = state.withLock({ $0.entry }) else { return }
      // The watch closes the entry when it is idle.
      environment.watch(self)
      try entry.recordCompleteLength(length)
    } catch {
      environment.logger.warning(
        "cannot record the length",
        metadata: ["file": "\(file.source.path)", "error": "\(error)"])
    }
  }

  /// A request brought all that it was to bring, as its server says.
  func finished(_ id: SegmentID) {
    releaseRecordIfUnread()
    var isPrefetched = false
    change { [policy = environment.retryPolicy] in
      $0.finished(id, policy: policy, random: .random(in: 0..<1), now: .now, into: &$1)
      isPrefetched = $0.isPrefetched
    }
    hasEnded(isPrefetched: isPrefetched)
  }

  /// A request was ended on purpose.
  private func dropped(_ id: SegmentID) {
    releaseRecordIfUnread()
    var isPrefetched = false
    change {
      $0.dropped(id, now: .now, into: &$1)
      isPrefetched = $0.isPrefetched
    }
    hasEnded(isPrefetched: isPrefetched)
  }

  private func hasEnded(isPrefetched: Bool) {
    if isPrefetched { environment.prefetcher.wake() }
    if !environment.cache.hasSpareDescriptors { _ = releaseIdleEntry() }
  }

  /// A file that was only looked at holds one descriptor until its bytes are committed, not two.
  private func releaseRecordIfUnread() {
    let entry = state.withLock { guarded in
      guarded.openCount == 0 && guarded.version.segments.count <= 1 ? guarded.entry : nil
    }
    if let entry { environment.storage.perform { entry.releaseRecord() } }
  }

  /// A request ended early; `error` nil when it was ended on purpose.
  func failed(_ id: SegmentID, _ error: FileError?, retryAfter: Duration? = nil) {
    guard var error else { return dropped(id) }
    if [.unavailable, .denied, .missing].contains(error.code) {
      let mirror = state.withLock { $0.version.mirror(of: id) } ?? 0
      let origin = file.url(ofMirror: mirror).normalizedOrigin
      environment.hedges.withLock { $0.noteRefusal(by: origin, now: .now) }
    }
    noteMirrorFailure(id, error, retryAfter: retryAfter)
    if error.code != .stale, state.withLock({ $0.version.dropFailedHedge(id) }) {
      return file.noteFailure(error, isRetried: true)
    }
    if moveToAnotherMirror(id, error) { return }
    error = hopeful(error, of: id)
    switch error.code {
    case .stale:
      state.withLock { _ = $0.version.endSegment(id) }
      file.versionContradicted(self)
    case .unreachable, .disconnected, .timedOut, .invalidResponse, .unavailable, .unsigned:
      file.noteFailure(error, isRetried: true)
      change { [policy = environment.retryPolicy] in
        $0.failed(
          id, error, retryAfter: retryAfter, policy: policy, random: .random(in: 0..<1),
          now: .now, into: &$1)
      }
    case .missing, .denied, .refused, .corrupt, .tooManyFiles, .cacheFailed, .unmounted:
      file.noteFailure(error, isRetried: false)
      change { $0.failedForGood(id, error, now: .now, into: &$1) }
    }
  }

  /// Takes note that the server of a request has failed.
  private func noteMirrorFailure(_ id: SegmentID, _ error: FileError, retryAfter: Duration?) {
    guard let mirrors = file.mirrors, error.isOfServer,
      let mirror = state.withLock({ $0.version.mirror(of: id) })
    else { return }
    mirrors.failed(mirror, error, retryAfter: retryAfter)
  }

  /// Has what a failed request was to bring asked for elsewhere.
  ///
  /// - Returns: whether another server can be asked; if not, the failure is that of the file.
  private func moveToAnotherMirror(_ id: SegmentID, _ error: FileError) -> Bool {
    guard let mirrors = file.mirrors, mirrors.count > 1, error.isOfServer,
      let mirror = state.withLock({ $0.version.mirror(of: id) }),
      mirrors.hasReady(besides: mirror)
    else { return false }
    file.noteFailure(
      FileError(error.code, "\(mirrors.url(mirror).authority): \(error.reason)"), isRetried: true)
    change { $0.dropped(id, after: error, now: .now, into: &$1) }
    return true
  }

  /// A server has answered with another file than the version's: it is not asked again, and what it was to
  /// bring is asked for elsewhere.
  func mirrorContradicted(_ id: SegmentID, _ mirror: Int, _ reason: String) {
    file.refuseMirror(mirror, reason)
    file.noteFailure(
      FileError(.refused, "\(file.url(ofMirror: mirror).authority): \(reason)"), isRetried: true)
    mirrorDeclined(id)
  }

  /// The answer to a request is not used, because a better server can be asked.
  func mirrorDeclined(_ id: SegmentID) { change { $0.dropped(id, now: .now, into: &$1) } }

  /// The failure of a request as that of the file: where another server has failed in a way that may pass,
  /// this one's word is not the last.
  private func hopeful(_ error: FileError, of id: SegmentID) -> FileError {
    guard let mirrors = file.mirrors, [.missing, .denied, .refused].contains(error.code),
      let mirror = state.withLock({ $0.version.mirror(of: id) }),
      mirrors.change({ $0.hasAbsent(besides: mirror, now: .now) })
    else { return error }
    return FileError(.unavailable, error.reason)
  }

  /// Nobody knows where the bytes are: that is asked, once for all requests that meet this, and what they
  /// were to bring is planned again then.
  func awaitLocation(_ id: SegmentID) {
    state.withLock { $0.version.awaitLocation(id) }
    file.renewLocation { [weak self] error in
      self?.change { [policy = self?.environment.retryPolicy ?? RetryPolicy()] in
        $0.located(error, policy: policy, random: .random(in: 0..<1), now: .now, into: &$1)
      }
    }
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
