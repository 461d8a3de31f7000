internal import HTTPTransferCore
internal import HTTPTypes

/// Tries the segments of one transfer again after failures, at other servers if there are some, or
/// begins anew.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentRetries: @unchecked Sendable {
  /// Owns this; whatever runs later holds it.
  private unowned let driver: TransferDriver
  private let request: Request
  private let monitor: TransferMonitor
  /// How often is tried again.
  var patience: TransferPatience
  /// How many requests may be hedged.
  var hedgeBudget = HedgeBudget()

  init(driver: TransferDriver) {
    self.driver = driver
    (request, monitor) = (driver.request, driver.monitor)
    patience = TransferPatience(retryCount: request.retryCount)
  }

  private var fetcher: SegmentFetcher { driver.fetcher }
  private var representation: Representation { driver.representation }

  /// Tries a segment again later, or fails.
  func retry(
    _ id: Int, _ error: TransferError, after retryAfter: Duration?, from mirror: Int
  ) {
    if fetcher.dropFailedHedge(id) { return }
    if failOver(id, error, after: retryAfter, from: mirror) { return }
    guard error.isTransient else { return driver.fail(error) }
    let isRefusal = error.status != nil || error.code == .connectionRefused
    if isRefusal {
      fetcher.table.stepDown(now: .now)
      hedgeBudget.noteRefusal(by: error.url.normalizedOrigin, now: .now)
    }
    // One of many connections that a server will not serve says nothing about the others.
    if isRefusal, representation.isConfirmed, !representation.isSequential, !fetcher.isIdle {
      fetcher.table.remove(id)
      monitor.emit(.retrying(error, attempt: 1, after: .zero))
      return
    }
    guard mayRepeat(after: error) else { return driver.fail(error) }
    if error.hasNoRoute, representation.isConfirmed, patience.waitsForRoute(now: .now) {
      fetcher.table.fail(id, isCounted: false)
      return sendAgain(id, FetchConstants.disconnectionInterval, after: error, attempt: 1)
    }
    var attempt = fetcher.table.fail(id)
    if fetcher.table[id]?.isWhole == true, !representation.canSkip {
      attempt = patience.countRepeat()
    }
    guard patience.allows(attempt, after: error, isConfirmed: representation.isConfirmed) else {
      if error.code == .changed { return beginAnew("the remote file has changed") }
      return driver.fail(error)
    }
    let delay = request.retryPolicy.delay(
      failures: attempt, retryAfter: retryAfter, random: .random(in: 0..<1))
    sendAgain(id, delay, after: error, attempt: attempt)
  }

  /// The URL that was asked refuses, which is no failure: another one is asked at once.
  func askElsewhere(_ id: Int, _ error: TransferError) {
    monitor.emit(.retrying(error, attempt: 1, after: .zero))
    if driver.phase == .paused { return fetcher.table.remove(id) }
    fetcher.table.fail(id, isCounted: false)
    goOn(with: id)
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
  ) {
    monitor.emit(.retrying(error, attempt: attempt, after: delay))
    if driver.phase == .paused { return fetcher.table.remove(id) }
    if fetcher.isIdle { monitor.update { $0.state = .waiting } }
    driver.client.schedule(after: delay) { [driver] in
      guard driver.phase == .running, driver.fetcher.table[id]?.isWaiting == true else { return }
      driver.retries.goOn(with: id)
    }
  }

  /// Sends a segment again, or does what there is to do where it is not wanted any more.
  private func goOn(with id: Int) {
    if let segment = fetcher.table[id], let piece = segment.suspectPiece {
      guard driver.pieces.isSuspect(piece) else {
        fetcher.table.remove(id)
        return fetcher.table.isComplete ? driver.finish() : fetcher.plan()
      }
      if fetcher.nextMirror(for: segment) != segment.mirror,
        let range = driver.pieces.restart(piece)
      {
        fetcher.forget(range)
        fetcher.table.rewind(id, to: range.lowerBound)
      }
    }
    if let segment = fetcher.table.retry(id) {
      sendAgain(segment)
    } else if fetcher.table.isComplete {
      driver.finish()
    } else {
      fetcher.plan()
    }
  }

  /// Sends a segment again; a whole body of which a part is there goes on by ranges where it can.
  private func sendAgain(_ segment: SegmentTable.Segment) {
    guard segment.isWhole, fetcher.table.presentByteCount > 0 else { return fetcher.send(segment) }
    if !representation.canSkip {
      fetcher.table.remove(segment.id)
      return fetcher.launch()
    }
    guard patience.ignoredRangeCount == 0, !representation.haveRangesBeenRefused,
      fetcher.table.isLengthKnown
    else {
      // The same bytes again, of which those that are there are skipped.
      return fetcher.send(segment)
    }
    driver.representation.useRanges()
    fetcher.table.remove(segment.id)
    let hole = fetcher.table.extents.firstHole(in: fetcher.table.target) ?? fetcher.table.target
    fetcher.send(fetcher.table.add(hole, isWhole: false))
  }

  /// Forgets everything that was fetched and starts at the first byte.
  ///
  /// - Parameter reason: why, for the user.
  private func beginAnew(_ reason: String) {
    guard patience.mayRestart() else {
      return driver.fail(
        TransferError(
          .changed, request.url, "the remote file keeps changing; try again when it is at rest"))
    }
    if driver.forget(reason) { fetcher.launch() }
  }

  // MARK: Servers

  /// Gives a segment to another mirror after a failure of the mirror `index`.
  ///
  /// - Returns: whether the failure has been dealt with; else it counts as that of a single server.
  func failOver(
    _ id: Int, _ error: TransferError, after retryAfter: Duration?, from index: Int
  ) -> Bool {
    let mirrors = fetcher.mirrors
    guard mirrors.count > 1, error.isOfServer else { return false }
    if error.code == .changed, error.isTransient, !mirrors.hasTrusted(besides: index) {
      return false
    }
    let now = ContinuousClock.now
    if error.hasNoRoute, representation.isConfirmed {
      fetcher.mirrors.setAside(index, until: now + FetchConstants.disconnectionInterval)
      // Of a network that is down the mirrors know nothing.
      guard let next = fetcher.nextMirror(), fetcher.mirrors.rest(of: next, now: now) == .zero
      else { return false }
      return send(id, to: next, after: error, attempt: 1)
    }
    let isKnown = mirrors[index].content != nil
    if error.status != nil, mirrors[index].flightCount > 0, isKnown {
      // One connection too many says nothing about the others.
      fetcher.mirrors.limitFlights(index)
      fetcher.table.stepDown(now: now)
      fetcher.table.remove(id)
      monitor.emit(.retrying(error, attempt: 1, after: .zero))
      return true
    }
    let attempt = fetcher.mirrors.failed(
      index, reason: error.reason, retryAfter: retryAfter, random: .random(in: 0..<1), now: now)
    // One that has never answered is given up soon, since there are others.
    let limit = isKnown ? request.retryCount : min(1, request.retryCount)
    if error.code == .changed {
      if fetcher.mirrors.refuse(index, reason: error.reason) {
        monitor.emit(.mirrorExcluded(mirrors[index].url, reason: error.reason))
      }
    } else if !error.isTransient || attempt > limit {
      fetcher.exclude(index, error.reason)
    }
    if let next = fetcher.nextMirror() {
      let chosen = fetcher.table[id].map { fetcher.nextMirror(for: $0) }
      return send(id, to: chosen ?? next, after: error, attempt: attempt)
    }
    if fetcher.mirrors.hasOtherVersions {
      // Begins anew with those that have another version.
      beginAnew(
        representation.isConfirmed
          ? "the mirrors that are left have another version"
          : "the remote file has changed since the partial file was begun")
    } else {
      driver.fail(error.naming(fetcher.mirrors.refusals(besides: index)))
    }
    return true
  }

  private func send(_ id: Int, to next: Int, after error: TransferError, attempt: Int) -> Bool {
    let delay = fetcher.mirrors.rest(of: next, now: .now)
    fetcher.table.fail(id, isCounted: false)
    sendAgain(id, delay, after: error, attempt: attempt)
    return true
  }
}
