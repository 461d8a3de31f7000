internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// What follows from the end of a request: for the file, its server, and the missing bytes.
struct RequestEnds: Sendable {
  let owner: RemoteVersion

  /// Records a request that, as its server says, brought all of its bytes.
  func finished(_ id: SegmentID) { conclude(id, as: .finished) }

  /// Ends a request; the file may be complete now.
  private func conclude(_ id: SegmentID, as outcome: RequestOutcome) {
    releaseRecordIfUnread()
    end(id, as: outcome)
    if owner.state.withLock({ $0.version.isPrefetched }) { owner.environment.wakePrefetcher() }
    if !owner.environment.cache.hasSpareDescriptors { _ = owner.releaseIdleEntry() }
  }

  private func end(_ id: SegmentID, as outcome: RequestOutcome) {
    owner.change { [policy = owner.environment.retryPolicy] in
      $0.end(id, as: outcome, policy: policy, random: .random(in: 0..<1), now: .now, into: &$1)
    }
  }

  /// Closes the record of a file that is not open.
  ///
  /// The file needs one descriptor until its bytes are committed, not two.
  private func releaseRecordIfUnread() {
    let entry = owner.state.withLock { guarded in
      guarded.openCount == 0 && guarded.version.segments.count <= 1 ? guarded.entry : nil
    }
    if let entry { owner.environment.storage.perform { entry.releaseRecord() } }
  }

  /// Records a request that ended early; `error` is nil if it was ended on purpose.
  func failed(_ id: SegmentID, _ error: FileError?, retryAfter: Duration? = nil) {
    guard var error else { return conclude(id, as: .dropped) }
    if error.contact == .refused {
      let mirror = owner.state.withLock { $0.version.mirror(of: id) } ?? 0
      let origin = owner.file.url(ofMirror: mirror).normalizedOrigin
      owner.environment.hedges.withLock { $0.recordRefusal(by: origin, now: .now) }
    }
    let isGone = recordOutage(id, error)
    recordMirrorFailure(id, error, retryAfter: retryAfter)
    if error.code != .stale, owner.state.withLock({ $0.version.dropFailedHedge(id) }) {
      return owner.file.recordFailure(error, isRetried: true)
    }
    if moveToAnotherMirror(id, error) { return }
    error = hopeful(error, of: id)
    if isGone {
      error = error.ofOutage
      owner.file.recordFailure(error, isRetried: false)
      return end(id, as: .failedForGood(error))
    }
    switch error.code {
    case .stale:
      owner.state.withLock { _ = $0.version.endSegment(id) }
      owner.home.versionContradicted(owner.id)
      owner.supersede()
    case .unreachable, .disconnected, .timedOut, .invalidResponse, .rejected, .unavailable,
      .unsigned, .exhausted, .cacheFailed:
      owner.file.recordFailure(error, isRetried: true)
      end(id, as: .failed(error, retryAfter: retryAfter))
    case .tooManyFiles: lackedDescriptors(id, error)
    case .missing, .denied, .refused, .corrupt, .unmounted:
      owner.file.recordFailure(error, isRetried: false)
      end(id, as: .failedForGood(error))
    }
  }

  /// Ends a request whose bytes found no descriptor while no program had the file open.
  ///
  /// A program that has opened the file since has a descriptor: its reads are planned again.
  private func lackedDescriptors(_ id: SegmentID, _ error: FileError) {
    owner.file.recordShortage(error)
    owner.transact { [policy = owner.environment.retryPolicy] guarded, actions in
      guarded.version.end(
        id, as: guarded.openCount > 0 ? .dropped : .failedForGood(error), policy: policy,
        random: .random(in: 0..<1), now: .now, into: &actions)
    }
  }

  /// Records that a server cannot be reached, or has answered.
  ///
  /// - Returns: whether every server of the file has been gone for too long to retry the request.
  private func recordOutage(_ id: SegmentID, _ error: FileError) -> Bool {
    guard let mirror = owner.state.withLock({ $0.version.mirror(of: id) }) else { return false }
    return owner.file.recordOutage(error, from: mirror)
  }

  /// Records that the server of a request has failed.
  private func recordMirrorFailure(_ id: SegmentID, _ error: FileError, retryAfter: Duration?) {
    guard let mirrors = owner.file.mirrors, error.isOfServer,
      let mirror = owner.state.withLock({ $0.version.mirror(of: id) })
    else { return }
    mirrors.failed(mirror, error, retryAfter: retryAfter)
  }

  /// Moves the missing bytes of a failed request to another server.
  ///
  /// - Returns: whether another server can be asked; if not, the file has failed.
  private func moveToAnotherMirror(_ id: SegmentID, _ error: FileError) -> Bool {
    guard let mirrors = owner.file.mirrors, mirrors.count > 1, error.isOfServer,
      let mirror = owner.state.withLock({ $0.version.mirror(of: id) }),
      mirrors.hasReady(besides: mirror)
    else { return false }
    owner.file.recordFailure(
      FileError(error.code, "\(mirrors.url(mirror).authority): \(error.reason)"), isRetried: true)
    end(id, as: .moved(after: error))
    return true
  }

  /// Handles an answer with another file than the version's: the server is not asked again.
  ///
  /// The missing bytes are requested elsewhere.
  func mirrorContradicted(_ id: SegmentID, _ mirror: Int, _ reason: String) {
    owner.file.refuseMirror(mirror, reason)
    owner.file.recordFailure(
      FileError(.refused, "\(owner.file.url(ofMirror: mirror).authority): \(reason)"),
      isRetried: true)
    mirrorDeclined(id)
  }

  /// Drops the answer to a request, because a better server can be asked.
  func mirrorDeclined(_ id: SegmentID) { end(id, as: .dropped) }

  /// The failure of the file after a failure of a request.
  ///
  /// If another server has failed in a way that may be temporary, the failure of this one is not
  /// final.
  private func hopeful(_ error: FileError, of id: SegmentID) -> FileError {
    guard let mirrors = owner.file.mirrors, [.missing, .denied, .refused].contains(error.code),
      let mirror = owner.state.withLock({ $0.version.mirror(of: id) }),
      mirrors.change({ $0.hasUnavailable(besides: mirror, now: .now) })
    else { return error }
    return FileError(.unavailable, error.reason)
  }

  /// Requests the bytes again of a request whose URL is no longer the one to ask.
  ///
  /// A file with one server first asks once, for all such requests, where its bytes are. If there
  /// are several servers, the others can be asked at once.
  func askAgain(_ id: SegmentID) {
    if owner.file.mirrors?.count ?? 1 > 1 { return end(id, as: .dropped) }
    awaitLocation(id)
  }

  /// Makes a request wait until the location of the bytes is known.
  ///
  /// The question is asked once for all such requests; then their bytes are planned again.
  func awaitLocation(_ id: SegmentID) {
    owner.state.withLock { $0.version.awaitLocation(id) }
    owner.home.renewLocation { [weak owner] error in
      owner?.change { [policy = owner?.environment.retryPolicy ?? RetryPolicy()] in
        $0.located(error, policy: policy, random: .random(in: 0..<1), now: .now, into: &$1)
      }
    }
  }
}
