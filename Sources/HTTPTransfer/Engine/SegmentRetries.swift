internal import HTTPTransferCore
internal import HTTPTypes

/// Decides how the segments of one transfer are tried again after failures, at other servers if there
/// are some.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentRetries: @unchecked Sendable {
  private let request: Request
  private let fetcher: SegmentFetcher
  private let monitor: TransferMonitor

  init(_ request: Request, fetcher: SegmentFetcher, monitor: TransferMonitor) {
    self.request = request
    self.fetcher = fetcher
    self.monitor = monitor
  }

  private var representation: Representation { fetcher.representation }

  /// Tries a segment again later, or fails.
  func retry(
    _ id: Int, _ error: TransferError, after retryAfter: Duration?, from mirror: Int
  ) -> TransferStep {
    if fetcher.dropFailedHedge(id) { return .wait }
    if let step = failOver(id, error, after: retryAfter, from: mirror) { return step }
    guard error.isTransient else { return .fail(error) }
    let isRefusal = error.status != nil || error.code == .connectionRefused
    if isRefusal { fetcher.noteRefusal(by: error.url) }
    // One of many connections that a server will not serve says nothing about the others.
    if isRefusal, representation.isConfirmed, !representation.isSequential, !fetcher.isIdle {
      fetcher.table.remove(id)
      monitor.emit(.retrying(error, attempt: 1, after: .zero))
      return .wait
    }
    guard mayRepeat(after: error) else { return .fail(error) }
    if error.hasNoRoute, representation.isConfirmed, fetcher.patience.waitsForRoute(now: .now) {
      fetcher.table.fail(id, isCounted: false)
      return sendAgain(id, FetchConstants.disconnectionInterval, after: error, attempt: 1)
    }
    var attempt = fetcher.table.fail(id)
    if fetcher.table[id]?.isWhole == true, !representation.canSkip {
      attempt = fetcher.patience.countRepeat()
    }
    let isConfirmed = representation.isConfirmed
    guard fetcher.patience.allows(attempt, after: error, isConfirmed: isConfirmed) else {
      return error.code == .changed ? startOver("the remote file has changed") : .fail(error)
    }
    let delay = request.retryPolicy.delay(
      failures: attempt, retryAfter: retryAfter, random: .random(in: 0..<1))
    return sendAgain(id, delay, after: error, attempt: attempt)
  }

  /// The URL that was asked refuses, which is no failure: another one is asked at once.
  func askElsewhere(_ id: Int, _ error: TransferError) -> TransferStep {
    monitor.emit(.retrying(error, attempt: 1, after: .zero))
    fetcher.table.fail(id, isCounted: false)
    return .tryAgain(id, after: nil)
  }

  /// Whether the request can be sent again without doing something twice.
  private func mayRepeat(after error: TransferError) -> Bool {
    // Not after a redirect, which the request itself has brought about.
    request.method.isRepeatable
      || error.url == request.url
        && (error.code == .unresolvedHost || error.code == .connectionRefused)
  }

  private func sendAgain(
    _ id: Int, _ delay: Duration, after error: TransferError, attempt: Int
  ) -> TransferStep {
    monitor.emit(.retrying(error, attempt: attempt, after: delay))
    return .tryAgain(id, after: delay)
  }

  /// Sends a segment again, or says what follows where it is not wanted any more.
  func resume(with id: Int) -> TransferStep {
    let pieces = fetcher.pieces
    if let segment = fetcher.table[id], let piece = segment.suspectPiece {
      guard pieces.isSuspect(piece) else {
        fetcher.table.remove(id)
        return fetcher.table.isComplete ? .finish : .plan
      }
      if fetcher.nextMirror(for: segment) != segment.mirror,
        let range = pieces.restart(piece, by: id)
      {
        fetcher.forget(range)
        fetcher.table.rewind(id, to: range.lowerBound)
      }
    }
    if let segment = fetcher.table.retry(id) { return sendAgain(segment) }
    return fetcher.table.isComplete ? .finish : .plan
  }

  /// Sends a segment again; a whole body of which a part is there continues by ranges if possible.
  private func sendAgain(_ segment: SegmentTable.Segment) -> TransferStep {
    guard segment.isWhole, fetcher.table.presentByteCount > 0 else {
      fetcher.send(segment)
      return .wait
    }
    if !representation.canSkip {
      fetcher.table.remove(segment.id)
      return .launch
    }
    guard fetcher.patience.ignoredRangeCount == 0, !representation.haveRangesBeenRefused,
      fetcher.table.isLengthKnown
    else {
      // The same bytes again, of which those that are there are skipped.
      fetcher.send(segment)
      return .wait
    }
    fetcher.representation.useRanges()
    fetcher.table.remove(segment.id)
    let hole = fetcher.table.extents.firstHole(in: fetcher.table.target) ?? fetcher.table.target
    fetcher.send(fetcher.table.add(hole, isWhole: false))
    return .wait
  }

  /// Starts over, unless that has been done too often.
  ///
  /// - Parameter reason: why, for the user.
  /// - Returns: what the transfer does next.
  private func startOver(_ reason: String) -> TransferStep {
    guard fetcher.patience.mayRestart() else {
      return .fail(
        TransferError(
          .changed, request.url, "the remote file keeps changing; try again when it is at rest"))
    }
    return .startOver(reason)
  }

  // MARK: Servers

  /// Gives a segment to another mirror after a failure of the mirror `index`.
  ///
  /// - Returns: what follows; nil if the failure counts as that of a single server.
  func failOver(
    _ id: Int, _ error: TransferError, after retryAfter: Duration?, from index: Int
  ) -> TransferStep? {
    let mirrors = fetcher.servers.mirrors
    guard mirrors.count > 1, error.isOfServer else { return nil }
    if error.code == .changed, error.isTransient, !mirrors.hasTrusted(besides: index) {
      return nil
    }
    let now = ContinuousClock.now
    if error.hasNoRoute, representation.isConfirmed {
      fetcher.servers.mirrors.setAside(index, until: now + FetchConstants.disconnectionInterval)
      // Of a network that is down the mirrors know nothing.
      guard let next = fetcher.nextMirror(),
        fetcher.servers.mirrors.rest(of: next, now: now) == .zero
      else { return nil }
      return send(id, to: next, after: error, attempt: 1)
    }
    let isKnown = mirrors[index].content != nil
    if error.status != nil, mirrors[index].flightCount > 0, isKnown {
      // One connection too many says nothing about the others.
      fetcher.servers.mirrors.limitFlights(index)
      fetcher.table.stepDown(now: now)
      fetcher.table.remove(id)
      monitor.emit(.retrying(error, attempt: 1, after: .zero))
      return .wait
    }
    let attempt = fetcher.servers.mirrors.failed(
      index, reason: error.reason, retryAfter: retryAfter, random: .random(in: 0..<1), now: now)
    // One that has never answered is given up soon, since there are others.
    let limit = isKnown ? request.retryCount : min(1, request.retryCount)
    if error.code == .changed {
      if fetcher.servers.mirrors.refuse(index, reason: error.reason) {
        monitor.emit(.mirrorExcluded(mirrors[index].url, reason: error.reason))
      }
    } else if !error.isTransient || attempt > limit {
      fetcher.exclude(index, error.reason)
    }
    if let next = fetcher.nextMirror() {
      let chosen = fetcher.table[id].map { fetcher.nextMirror(for: $0) }
      return send(id, to: chosen ?? next, after: error, attempt: attempt)
    }
    if fetcher.servers.mirrors.hasOtherVersions {
      // Starts over with those that have another version.
      return startOver(
        representation.isConfirmed
          ? "the mirrors that are left have another version"
          : "the remote file has changed since the partial file was begun")
    }
    return .fail(error.naming(fetcher.servers.mirrors.refusals(besides: index)))
  }

  private func send(
    _ id: Int, to next: Int, after error: TransferError, attempt: Int
  ) -> TransferStep {
    let delay = fetcher.servers.mirrors.rest(of: next, now: .now)
    fetcher.table.fail(id, isCounted: false)
    return sendAgain(id, delay, after: error, attempt: attempt)
  }
}
