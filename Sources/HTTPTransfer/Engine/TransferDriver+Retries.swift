internal import HTTPTransferCore
internal import HTTPTypes

/// What is tried again after a failure, and what begins at the first byte.
extension TransferDriver {
  // MARK: Retrying

  /// Tries a segment again later, or fails.
  func retry(
    _ id: Int, _ error: TransferError, after retryAfter: Duration?, from mirror: Int
  ) {
    if dropFailedHedge(id) { return }
    if failOver(id, error, after: retryAfter, from: mirror) { return }
    guard error.isTransient else { return fail(error) }
    let isRefusal = error.status != nil || error.code == .connectionRefused
    if isRefusal {
      table.stepDown(now: .now)
      hedgeBudget.noteRefusal(by: error.url.normalizedOrigin, now: .now)
    }
    // One of many connections that a server will not serve says nothing about the others.
    if isRefusal, isConfirmed, !isSequential, !exchanges.isEmpty {
      table.remove(id)
      monitor.emit(.retrying(error, attempt: 1, after: .zero))
      return
    }
    guard mayRepeat(after: error) else { return fail(error) }
    if error.hasNoRoute, isConfirmed, waitForRoute(id, error) { return }
    var attempt = table.fail(id)
    if table[id]?.isWhole == true, !canSkip {
      // What it has brought is lost, so bringing something is no reason to count anew.
      repeatCount += 1
      attempt = repeatCount
    }
    // A host that was never reached is more likely mistyped than tired.
    let isUnknown =
      !isConfirmed && [.unresolvedHost, .connectionRefused, .timedOut].contains(error.code)
    // Servers of one name may disagree once or twice; what they agree on is a change.
    let limit = isUnknown ? 2 : error.code == .changed ? 3 : request.retryCount
    guard attempt <= min(request.retryCount, limit) else {
      if error.code == .changed { return beginAnew("the remote file has changed") }
      return fail(error)
    }
    let delay = request.retryPolicy.delay(
      failures: attempt, retryAfter: retryAfter, random: .random(in: 0..<1))
    monitor.emit(.retrying(error, attempt: attempt, after: delay))
    sendAgain(id, after: delay)
  }

  /// The URL of a segment's request has expired, which is no failure: another one is asked at once.
  func askElsewhere(_ id: Int, _ error: TransferError) {
    monitor.emit(.retrying(error, attempt: 1, after: .zero))
    if phase == .paused { return table.remove(id) }
    table.fail(id, isCounted: false)
    goOn(with: id)
  }

  /// Waits for the network to come back without counting a failure of the server's.
  ///
  /// - Returns: false where that has taken too long.
  private func waitForRoute(_ id: Int, _ error: TransferError) -> Bool {
    let now = ContinuousClock.now
    let since = disconnectedSince ?? now
    disconnectedSince = since
    guard now - since < FetchConstants.disconnectionPatience else { return false }
    table.fail(id, isCounted: false)
    monitor.emit(.retrying(error, attempt: 1, after: FetchConstants.disconnectionInterval))
    sendAgain(id, after: FetchConstants.disconnectionInterval)
    return true
  }

  func sendAgain(_ id: Int, after delay: Duration) {
    if phase == .paused { return table.remove(id) }
    if exchanges.isEmpty { monitor.update { $0.state = .waiting } }
    client.schedule(after: delay) { [self] in
      guard phase == .running, table[id]?.isWaiting == true else { return }
      goOn(with: id)
    }
  }

  /// Sends a segment again, or does what there is to do where it is not wanted any more.
  private func goOn(with id: Int) {
    if let piece = table[id]?.suspectPiece {
      guard let segment = table[id], pieces?.suspects.contains(piece) == true else {
        table.remove(id)
        return table.isComplete ? finish() : plan()
      }
      // Another server may bring it now, so it begins again.
      let range = restart(segment, ofPiece: piece)
      table.rewind(id, to: range.lowerBound)
    }
    if let segment = table.retry(id) {
      resendable(segment)
    } else if table.isComplete {
      finish()
    } else {
      plan()
    }
  }

  /// Sends a segment again; a whole body of which a part is there goes on by ranges where it can.
  private func resendable(_ segment: SegmentTable.Segment) {
    guard segment.isWhole else { return send(segment) }
    let canContinue = canSkip && ignoredRangeCount == 0 && !haveRangesBeenRefused
    if canContinue, table.isLengthKnown, table.presentByteCount > 0 {
      isSequential = false
      table.remove(segment.id)
      let hole = table.extents.firstHole(in: table.target) ?? table.target
      return send(table.add(hole, isWhole: false))
    }
    // The same bytes again, of which those that are there are skipped where they are provably the
    // same.
    if !canSkip, table.presentByteCount > 0 {
      table.remove(segment.id)
      return launch()
    }
    send(segment)
  }

  /// Whether another response can bring what this one lacks: its bytes are provably the same.
  var canSkip: Bool {
    request.method == .get && !request.decodesContent && version?.isResumable == true
  }

  /// Whether the request can be sent again without doing something twice.
  private func mayRepeat(after error: TransferError) -> Bool {
    // Not after a redirect, which the request itself has brought about.
    request.method.isRepeatable
      || error.url == request.url
        && (error.code == .unresolvedHost || error.code == .connectionRefused)
  }

  // MARK: Beginning anew

  /// Forgets everything that was fetched and starts at the first byte.
  ///
  /// - Parameters:
  ///   - reason: why, for the user.
  ///   - isCounted: whether it is one of the few times that this may happen.
  func beginAnew(_ reason: String, isCounted: Bool = true) {
    if isCounted { restartCount += 1 }
    guard restartCount <= Self.restartLimit else {
      return fail(
        TransferError(
          .changed, request.url, "the remote file keeps changing; try again when it is at rest"))
    }
    guard forget(reason) else { return }
    launch()
  }

  /// Forgets everything that was fetched; false where it has been handed on already.
  ///
  /// - Parameters:
  ///   - reason: why, for the user.
  ///   - kept: an exchange that goes on.
  /// - Returns: whether the transfer goes on.
  func forget(_ reason: String, except kept: SegmentExchange? = nil) -> Bool {
    endExchanges(flushing: false, except: kept)
    let progress = monitor.progress
    guard store.canBeginAnew || progress.receivedByteCount == 0 else {
      fail(TransferError(.changed, request.url, "\(reason), and a part of it has been handed on"))
      return false
    }
    monitor.emit(.restarted(reason: reason))
    let received = progress.receivedByteCount - progress.resumedByteCount
    if received != 0 { monitor.emit(.received(byteCount: -received)) }
    if progress.resumedByteCount != 0 {
      monitor.emit(.resumed(byteCount: -progress.resumedByteCount))
    }
    let total = request.method == .get ? request.range?.byteCount : nil
    if total != reportedTotal {
      monitor.emit(.totalChanged(by: (total ?? 0) - (reportedTotal ?? 0)))
      monitor.update { $0.totalByteCount = total }
      reportedTotal = total
    }
    table.reset(range: request.range)
    version = nil
    isConfirmed = false
    haveRangesWorked = false
    mirrors.forgetVersion()
    wholeCheck.forgetBytes()
    pieces = nil
    verified = ExtentSet()
    pendingChecks = []
    generation += 1
    return true
  }

  /// Ends every exchange under way.
  func endExchanges(flushing: Bool = true, except kept: SegmentExchange? = nil) {
    let running = exchanges
    for (id, exchange) in running where exchange.receiver !== kept { drop(id) }
    for exchange in running.values where exchange.receiver !== kept {
      if flushing { exchange.receiver.handOver(now: .now) }
      client.cancel(exchange.id)
    }
    if let scout, exchanges[scout] == nil { self.scout = nil }
  }

  /// The exchange goes on as that of another segment.
  func move(_ receiver: SegmentExchange, to id: Int) {
    guard let exchange = exchanges.removeValue(forKey: receiver.segmentID) else { return }
    receiver.segmentID = id
    exchanges[id] = exchange
  }
}
