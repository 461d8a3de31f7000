internal import HTTPTransferCore
internal import HTTPTypes

/// Several servers of the same bytes: whom to ask, whom to believe, whom to give up.
extension TransferDriver {
  // MARK: Whom to ask

  /// The mirror that the request for a segment goes to; the first if none is left.
  func nextMirror(for segment: SegmentTable.Segment) -> Int {
    // A piece that has to come from one mirror stays with it for as long as that can be asked.
    if segment.suspectPiece != nil, let mirror = segment.mirror, !mirrors[mirror].isRefused {
      return mirror
    }
    let others =
      segment.excludedMirrors.isEmpty ? nil : chooseMirror(except: segment.excludedMirrors)
    return others ?? chooseMirror() ?? 0
  }

  func chooseMirror(except excluded: Set<Int> = []) -> Int? {
    guard mirrors.count > 1 else { return 0 }
    // A download can wait until it can be asked, which a reader would not.
    if let sole = mirrors.sole { return sole }
    let now = ContinuousClock.now
    return canSpread
      ? mirrors.choose(isUrgent: false, except: excluded, now: now)
      : mirrors.contact(except: excluded, now: now)
  }

  /// Whether several exchanges are with one mirror.
  func isOneOfMany(at mirror: Int) -> Bool { mirrors[mirror].flightCount > 1 }

  /// Whether bytes of several mirrors may meet in one file: one has answered, and another one can prove
  /// that it has the same.
  private var canSpread: Bool {
    isConfirmed && (mirrors.trust == .hashesBeforeUse || version?.isResumable == true)
  }

  /// What shows that two servers have the same bytes: hashes, where nothing is handed on before they are
  /// compared.
  static func trust(of request: Request, into store: BodyStore) -> MirrorSet.Trust {
    let hasPieces = wantedPieces(of: request, into: store) != nil
    return store.canBeginAnew && (request.checksum != nil || hasPieces)
      ? .hashesBeforeUse : .validators
  }

  /// Why a response cannot be of the wanted file, whatever its server says; nil where it can.
  func objection(to content: ContentVersion) -> String? {
    guard let length = content.completeLength, request.range == nil, !request.decodesContent else {
      return nil
    }
    if let wanted = request.completeLength, wanted != length {
      return "the server's file has \(length) bytes, not \(wanted)"
    }
    if let wantedPieces, !wantedPieces.covers(length: length) {
      return "the server's file has \(length) bytes, and the hashes are of another number of pieces"
    }
    return nil
  }

  // MARK: Whom to give up

  /// Gives a segment to another mirror after a failure.
  ///
  /// - Parameters:
  ///   - id: the segment.
  ///   - error: the failure.
  ///   - retryAfter: how long the server wants to be left alone.
  ///   - index: the mirror that has failed.
  /// - Returns: whether the failure has been dealt with; else it counts as that of a single server.
  func failOver(
    _ id: Int, _ error: TransferError, after retryAfter: Duration?, from index: Int
  ) -> Bool {
    guard mirrors.count > 1, request.method == .get, error.isOfServer else { return false }
    if error.code == .changed, error.isTransient, !mirrors.hasTrusted(besides: index) {
      return false
    }
    let now = ContinuousClock.now
    if error.hasNoRoute, isConfirmed {
      mirrors.setAside(index, until: now + .milliseconds(500))
      // Of a network that is down the mirrors know nothing.
      guard let next = chooseMirror(), mirrors.rest(of: next, now: now) == .zero else {
        return false
      }
      return send(id, to: next, after: error, attempt: 1)
    }
    let isKnown = mirrors[index].content != nil
    if error.status != nil, mirrors[index].flightCount > 0, isKnown {
      // One connection too many says nothing about the others.
      mirrors.limitFlights(index)
      table.stepDown(now: now)
      table.remove(id)
      monitor.emit(.retrying(error, attempt: 1, after: .zero))
      return true
    }
    let attempt = mirrors.failed(
      index, reason: error.reason, retryAfter: retryAfter, random: .random(in: 0..<1), now: now)
    // One that has never answered is given up soon, since there are others.
    let limit = isKnown ? request.retryCount : min(1, request.retryCount)
    if error.code == .changed {
      if mirrors.refuse(index, reason: error.reason) {
        monitor.emit(.mirrorExcluded(mirrors[index].url, reason: error.reason))
      }
    } else if !error.isTransient || attempt > limit {
      exclude(index, error.reason)
    }
    guard let next = chooseMirror() else { return goOnWithout(index, error) }
    return send(
      id, to: table[id].map(nextMirror(for:)) ?? next, after: error, attempt: attempt)
  }

  private func send(_ id: Int, to next: Int, after error: TransferError, attempt: Int) -> Bool {
    let delay = mirrors.rest(of: next, now: .now)
    table.fail(id, isCounted: false)
    monitor.emit(.retrying(error, attempt: attempt, after: delay))
    sendAgain(id, after: delay)
    return true
  }

  /// No mirror is left: begins anew with those that have another version, or fails.
  private func goOnWithout(_ index: Int, _ error: TransferError) -> Bool {
    if mirrors.hasOtherVersions {
      beginAnew(
        isConfirmed
          ? "the mirrors that are left have another version"
          : "the remote file has changed since the partial file was begun")
    } else {
      fail(naming(error, besides: index))
    }
    return true
  }

  /// The error with what has become of the other mirrors.
  func naming(_ error: TransferError, besides index: Int?) -> TransferError {
    guard let others = mirrors.refusals(besides: index) else { return error }
    return TransferError(
      error.code, error.url, "\(error.reason); other mirrors: \(others)", response: error.response,
      errno: error.errno)
  }

  /// A mirror is not asked again, and the user is told.
  func exclude(_ index: Int, _ reason: String) {
    mirrors.exclude(index, reason: reason)
    monitor.emit(.mirrorExcluded(mirrors[index].url, reason: reason))
  }

  /// A mirror has served wrong bytes: nothing more of it is wanted.
  func excludeLiar(_ index: Int, _ reason: String) {
    guard mirrors.hasTrusted(besides: index) else { return }
    exclude(index, reason)
    for (id, exchange) in exchanges where exchange.receiver.mirror == index {
      drop(id)
      table.remove(id)
      client.cancel(exchange.id)
    }
  }

  // MARK: The checksum of the whole

  /// What came does not hash to the checksum: begins anew without the mirror that has served it, or with
  /// one mirror alone where it came from several.
  ///
  /// - Returns: false where there is no other way to get it.
  func beginAnew(afterMismatch failure: FileFailure) -> Bool {
    guard failure.code == .checksumMismatch, mirrors.count > 1, pieces == nil, store.canBeginAnew,
      case .refetch(let liar) = wholeCheck.fail(trusted: mirrors.trusted)
    else { return false }
    if let liar { exclude(liar, "what it serves has another checksum") }
    mirrors.sole = chooseMirror()
    phase = .running
    monitor.update { $0.state = .connecting }
    beginAnew("what came has another checksum; trying other mirrors", isCounted: false)
    return true
  }
}

extension TransferError {
  /// Whether another server may do better.
  fileprivate var isOfServer: Bool {
    switch code {
    case .unresolvedHost, .connectionRefused, .connectionLost, .timedOut, .tls, .redirect, .status,
      .invalidResponse, .changed, .other:
      true
    case .cancelled, .checksumMismatch, .tooLarge, .destination, .destinationExists,
      .destinationInUse, .unreadableBody, .invalidRequest, .outOfResources:
      false
    }
  }
}
