internal import HTTPTransferCore
internal import HTTPTypes

/// Decides how the segments of one transfer are retried after failures, also on other servers.
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

  /// Retries a segment later, or fails.
  ///
  /// The failure of a server that the next request does not go to is not counted (`isCounted`).
  func retry(
    _ id: Int, _ error: TransferError, after retryAfter: Duration?, from mirror: Int,
    isCounted: Bool = true
  ) -> TransferStep {
    if fetcher.dropFailedHedge(id, error, after: retryAfter, from: mirror) { return .wait }
    if let step = failOver(id, error, after: retryAfter, from: mirror) { return step }
    guard error.isTransient else { return .fail(error) }
    let isRefusal = error.status != nil || error.code == .connectionRefused
    if isRefusal { fetcher.recordRefusal(by: error.url) }
    // A refusal of one of several connections says nothing about the others.
    if isRefusal, representation.isConfirmed, !representation.isSingleStream, !fetcher.isIdle {
      fetcher.table.remove(id)
      monitor.emit(.retrying(error, attempt: 1, after: .zero))
      return .wait
    }
    guard mayRepeat(after: error) else { return .fail(error) }
    if error.hasNoRoute, representation.isConfirmed, fetcher.allowance.waitsForRoute(now: .now) {
      fetcher.table.fail(id, isCounted: false)
      return sendAgain(id, FetchConstants.disconnectionInterval, after: error, attempt: 1)
    }
    var attempt = fetcher.table.fail(id, isCounted: isCounted)
    if !isCounted { return sendAgain(id, .zero, after: error, attempt: 1) }
    if fetcher.table[id]?.isWhole == true, !representation.canSkip {
      attempt = fetcher.allowance.countRepeat()
    }
    let isConfirmed = representation.isConfirmed
    guard fetcher.allowance.allows(attempt, after: error, isConfirmed: isConfirmed) else {
      return error.code == .changed ? startOver(ResponseFault.hasChanged) : .fail(error)
    }
    let delay = request.retryPolicy.delay(
      failures: attempt, retryAfter: retryAfter, random: .random(in: 0..<1))
    return sendAgain(id, delay, after: error, attempt: attempt)
  }

  /// Requests a segment from another URL at once; an expired URL is no failure.
  func askElsewhere(_ id: Int, _ error: TransferError) -> TransferStep {
    monitor.emit(.retrying(error, attempt: 1, after: .zero))
    fetcher.table.fail(id, isCounted: false)
    return .tryAgain(id, after: nil)
  }

  /// Whether the request can be sent again without being carried out twice.
  private func mayRepeat(after error: TransferError) -> Bool {
    // Not after a redirect, because that is already an answer to the request.
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

  /// Sends a segment again, or returns the next step if it is no longer wanted.
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

  /// Sends a segment again; a partly stored whole continues by ranges if possible.
  private func sendAgain(_ segment: SegmentTable.Segment) -> TransferStep {
    guard segment.isWhole, fetcher.table.presentByteCount > 0 else {
      fetcher.send(segment)
      return .wait
    }
    if !representation.canSkip {
      fetcher.table.remove(segment.id)
      return .launch
    }
    guard fetcher.allowance.ignoredRangeCount == 0, !representation.haveRangesBeenRefused,
      fetcher.table.isLengthKnown
    else {
      // Request the same bytes again, and skip those that are present.
      fetcher.send(segment)
      return .wait
    }
    fetcher.representation.useRanges()
    fetcher.table.remove(segment.id)
    let hole = fetcher.table.extents.firstHole(in: fetcher.table.target) ?? fetcher.table.target
    fetcher.send(fetcher.table.add(hole, isWhole: false))
    return .wait
  }

  /// Starts over, unless the limit is reached.
  ///
  /// - Parameter reason: the reason, for the user.
  /// - Returns: the next step of the transfer.
  private func startOver(_ reason: String) -> TransferStep {
    guard fetcher.allowance.mayRestart() else {
      return .fail(
        TransferError(
          .changed, request.url, "the remote file keeps changing; try again when it is at rest"))
    }
    return .startOver(reason)
  }

  // MARK: Servers

  /// Moves a segment to another mirror after a failure of the mirror `index`.
  ///
  /// - Returns: the next step; nil if the failure counts as that of a single server.
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
      // If all mirrors are set aside, the network is down, which is not their fault.
      guard let next = fetcher.nextMirror(),
        fetcher.servers.mirrors.rest(of: next, now: now) == .zero
      else { return nil }
      return send(id, to: next, after: error, attempt: 1)
    }
    let isKnown = mirrors[index].content != nil
    if error.status != nil, mirrors[index].flightCount > 0, isKnown {
      // A refusal of one connection too many says nothing about the others.
      fetcher.servers.mirrors.limitFlights(index)
      fetcher.table.stepDown(now: now)
      fetcher.table.remove(id)
      monitor.emit(.retrying(error, attempt: 1, after: .zero))
      return .wait
    }
    let attempt = fetcher.servers.mirrors.failed(
      index, reason: error.reason, retryAfter: retryAfter, random: .random(in: 0..<1), now: now)
    // A mirror that has never answered is excluded soon, because there are others.
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
      // Start over with the mirrors that have another version.
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
