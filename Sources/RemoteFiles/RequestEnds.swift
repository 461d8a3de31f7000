internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// What follows from the end of a request for bytes of a version: for its file, for the server that was asked,
/// and for what it has not brought.
struct RequestEnds: Sendable {
  let owner: RemoteVersion

  /// A request brought all that it was to bring, as its server says.
  func finished(_ id: SegmentID) { conclude(id, as: .finished) }

  /// A request has ended, and perhaps all of the file is there.
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

  /// A file that was only looked at holds one descriptor until its bytes are committed, not two.
  private func releaseRecordIfUnread() {
    let entry = owner.state.withLock { guarded in
      guarded.openCount == 0 && guarded.version.segments.count <= 1 ? guarded.entry : nil
    }
    if let entry { owner.environment.storage.perform { entry.releaseRecord() } }
  }

  /// A request ended early; `error` nil when it was ended on purpose.
  func failed(_ id: SegmentID, _ error: FileError?, retryAfter: Duration? = nil) {
    guard var error else { return conclude(id, as: .dropped) }
    if [.unavailable, .denied, .missing].contains(error.code) {
      let mirror = owner.state.withLock { $0.version.mirror(of: id) } ?? 0
      let origin = owner.file.url(ofMirror: mirror).normalizedOrigin
      owner.environment.hedges.withLock { $0.noteRefusal(by: origin, now: .now) }
    }
    noteMirrorFailure(id, error, retryAfter: retryAfter)
    if error.code != .stale, owner.state.withLock({ $0.version.dropFailedHedge(id) }) {
      return owner.file.noteFailure(error, isRetried: true)
    }
    if moveToAnotherMirror(id, error) { return }
    error = hopeful(error, of: id)
    switch error.code {
    case .stale:
      owner.state.withLock { _ = $0.version.endSegment(id) }
      owner.home.versionContradicted(owner.id)
      owner.supersede()
    case .unreachable, .disconnected, .timedOut, .invalidResponse, .unavailable, .unsigned,
      .cacheFailed:
      owner.file.noteFailure(error, isRetried: true)
      end(id, as: .failed(error, retryAfter: retryAfter))
    case .tooManyFiles: lackedDescriptors(id, error)
    case .missing, .denied, .refused, .corrupt, .unmounted:
      owner.file.noteFailure(error, isRetried: false)
      end(id, as: .failedForGood(error))
    }
  }

  /// Nobody had the file open, and there were no descriptors for what came.
  ///
  /// Whoever has opened it since has its own: what they wait for is planned again.
  private func lackedDescriptors(_ id: SegmentID, _ error: FileError) {
    owner.file.noteShortage(error)
    owner.transact { [policy = owner.environment.retryPolicy] guarded, actions in
      guarded.version.end(
        id, as: guarded.openCount > 0 ? .dropped : .failedForGood(error), policy: policy,
        random: .random(in: 0..<1), now: .now, into: &actions)
    }
  }

  /// Takes note that the server of a request has failed.
  private func noteMirrorFailure(_ id: SegmentID, _ error: FileError, retryAfter: Duration?) {
    guard let mirrors = owner.file.mirrors, error.isOfServer,
      let mirror = owner.state.withLock({ $0.version.mirror(of: id) })
    else { return }
    mirrors.failed(mirror, error, retryAfter: retryAfter)
  }

  /// Has what a failed request was to bring asked for elsewhere.
  ///
  /// - Returns: whether another server can be asked; if not, the failure is that of the file.
  private func moveToAnotherMirror(_ id: SegmentID, _ error: FileError) -> Bool {
    guard let mirrors = owner.file.mirrors, mirrors.count > 1, error.isOfServer,
      let mirror = owner.state.withLock({ $0.version.mirror(of: id) }),
      mirrors.hasReady(besides: mirror)
    else { return false }
    owner.file.noteFailure(
      FileError(error.code, "\(mirrors.url(mirror).authority): \(error.reason)"), isRetried: true)
    end(id, as: .moved(after: error))
    return true
  }

  /// A server has answered with another file than the version's: it is not asked again, and what it was to
  /// bring is asked for elsewhere.
  func mirrorContradicted(_ id: SegmentID, _ mirror: Int, _ reason: String) {
    owner.file.refuseMirror(mirror, reason)
    owner.file.noteFailure(
      FileError(.refused, "\(owner.file.url(ofMirror: mirror).authority): \(reason)"),
      isRetried: true)
    mirrorDeclined(id)
  }

  /// The answer to a request is not used, because a better server can be asked.
  func mirrorDeclined(_ id: SegmentID) { end(id, as: .dropped) }

  /// The failure of a request as that of the file: where another server has failed in a way that may pass,
  /// this one's word is not the last.
  private func hopeful(_ error: FileError, of id: SegmentID) -> FileError {
    guard let mirrors = owner.file.mirrors, [.missing, .denied, .refused].contains(error.code),
      let mirror = owner.state.withLock({ $0.version.mirror(of: id) }),
      mirrors.change({ $0.hasAbsent(besides: mirror, now: .now) })
    else { return error }
    return FileError(.unavailable, error.reason)
  }

  /// Nobody knows where the bytes are: that is asked, once for all requests that meet this, and what they
  /// were to bring is planned again then.
  func awaitLocation(_ id: SegmentID) {
    owner.state.withLock { $0.version.awaitLocation(id) }
    owner.home.renewLocation { [weak owner] error in
      owner?.change { [policy = owner?.environment.retryPolicy ?? RetryPolicy()] in
        $0.located(error, policy: policy, random: .random(in: 0..<1), now: .now, into: &$1)
      }
    }
  }
}

extension RemoteVersion {
  /// Takes up how requests end.
  var ends: RequestEnds { RequestEnds(owner: self) }
}
