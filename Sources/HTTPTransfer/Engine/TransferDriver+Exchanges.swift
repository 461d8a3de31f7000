internal import HTTPTransferCore
internal import HTTPTypes

/// What comes of an exchange: held back, redirected, ended.
extension TransferDriver {
  /// A request is held back, or is being sent now: the server has asked to wait.
  func held(until moment: ContinuousClock.Instant?) {
    guard phase == .running else { return }
    monitor.update { progress in
      // The answer ends the wait that is shown.
      guard let moment else {
        progress.reason = nil
        return
      }
      // Others that were sent before may still bring bytes.
      if exchanges.count <= 1 { progress.state = .waiting }
      let seconds = Int(((moment - .now) / .seconds(1)).rounded(.up))
      progress.reason = "the server has asked for no request for \(seconds) s"
    }
  }

  func redirected(to url: RemoteURL, status: Int, by mirror: Int) {
    if !isConfirmed || locations[mirror].redirected == nil {
      monitor.emit(.redirected(to: url, status: status))
    }
  }

  func ended(
    _ receiver: SegmentExchange, _ completion: ExchangeCompletion, _ metrics: ExchangeMetrics
  ) {
    rawByteCount += metrics.rawByteCount
    let id = receiver.segmentID
    guard let exchange = exchanges[id], exchange.receiver === receiver else { return }
    drop(id)
    guard phase == .running || phase == .paused else { return }
    if metrics.newConnections == 0, metrics.timeToFirstByte > .zero {
      table.noteRoundTrip(metrics.timeToFirstByte)
    }
    if receiver.verdict.isFailure, dropFailedHedge(id) { return showConnections() }
    switch receiver.verdict {
    case .superseded:
      if phase == .running, exchanges.isEmpty, table.segments.isEmpty { launch() }
    case .fail(let error):
      if !failOver(id, error, after: nil, from: receiver.mirror) { fail(error) }
    case .retry(let error, let delay): retry(id, error, after: delay, from: receiver.mirror)
    case .expired(let error): askElsewhere(id, error)
    case .unchanged(let head, let url): leaveEarlier(head, from: url)
    case .none: bodyEnded(receiver, completion)
    }
    scoutEnded(id)
    showConnections()
  }

  private func bodyEnded(_ receiver: SegmentExchange, _ completion: ExchangeCompletion) {
    let id = receiver.segmentID
    guard let segment = table[id] else { return }
    switch completion {
    case .cancelled:
      // Only a body that nobody wants is ended like that: that of an empty file.
      table.remove(id)
      if table.isComplete { finish() }
    case .failed(let error):
      if error.code == .unreadableBody, let failure = body?.failure {
        return fail(transferError(failure))
      }
      retry(id, TransferError(error), after: nil, from: receiver.mirror)
    case .stopped where table[id].map({ $0.storedEnd < $0.end }) == true:
      // Nobody ends a body on purpose before the segment's end.
      retryCut(receiver)
    case .finished where receiver.position == nil && !table.isComplete:
      // Neither a body nor a verdict on it: that must not be asked for without an end.
      retryCut(receiver)
    case .finished, .stopped:
      if let position = receiver.position {
        if let expected = receiver.expectedEnd, position < expected, position < segment.end {
          return retryCut(receiver)
        }
        if receiver.expectedEnd == nil, segment.isWhole {
          // What the length was known to be, it stays.
          if table.isLengthKnown, position < table.target.upperBound {
            return retryCut(receiver)
          }
          learnEnd(position)
          guard phase != .ended else { return }
        }
        if !segment.isWhole, position < segment.end, !table.isComplete {
          // A part shorter than asked for, which a server may send: the rest is asked for anew.
          table.remove(id)
          return plan()
        }
      }
      if phase == .running, isSequential, !table.isComplete, hasRefutedPiece {
        table.remove(id)
        return fetchRefutedPieces()
      }
      if phase == .running, isSequential, !table.isComplete {
        // The whole has come without all that was wanted of it; never asked for without an end.
        return retryCut(receiver)
      }
      table.remove(id)
      if table.isComplete { finish() } else { plan() }
      if phase == .running, exchanges.isEmpty, table.segments.isEmpty {
        // Nothing is under way and nothing was planned: an answer that brought nothing.
        launch()
      }
    }
  }

  private func retryCut(_ receiver: SegmentExchange) {
    let index = receiver.mirror
    let error = TransferError(
      .connectionLost, locations[index].current ?? mirrors[index].url, "response cut short",
      isTransient: true)
    retry(receiver.segmentID, error, after: nil, from: receiver.mirror)
  }

  /// A body without a declared length has ended.
  private func learnEnd(_ length: Int64) {
    if request.method == .get, let range = request.range, range.lowerBound >= length, let response {
      let error = beyondTheEnd(length, response.head, response.url)
      return end(.failure(error), removes: true)
    }
    table.setLength(length)
    reportTotal()
    store.run { sink throws(FileFailure) in
      try sink.recordLength(length)
    } then: { [self] result in
      // A file that is being finished needs no record any more.
      if case .failure(let failure) = result, phase != .finishing { fail(transferError(failure)) }
    }
  }

  /// Reports the total where it is not the one reported last.
  func reportTotal() {
    guard let total = table.wantedByteCount, total != reportedTotal else { return }
    monitor.emit(.totalChanged(by: total - (reportedTotal ?? 0)))
    reportedTotal = total
  }
}
