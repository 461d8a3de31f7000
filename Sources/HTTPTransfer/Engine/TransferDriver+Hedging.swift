internal import HTTPTransferCore

/// Hedges: if a request brings nothing for a while, its next bytes are asked for once more, over
/// another connection.
///
/// Whichever of the two brings something first continues, and the other one is ended.
extension TransferDriver {
  /// Looks for requests to hedge, again and again while there are requests.
  func watchForHedges() {
    guard request.isHedged, !watchesForHedges, !isSequential else { return }
    watchesForHedges = true
    let delay = HedgePlanner(roundTrip: table.roundTrip, patience: request.stallTimeout).delay
    client.schedule(after: delay / 2) { [weak self] in
      guard let self else { return }
      watchesForHedges = false
      guard phase == .running, !exchanges.isEmpty else { return }
      hedge(after: delay)
      watchForHedges()
    }
  }

  private func hedge(after delay: Duration) {
    guard isConfirmed, !isSequential, !isLost, scout == nil, body == nil else { return }
    let now = ContinuousClock.now
    let origins = Set(locations.compactMap { $0.current?.normalizedOrigin })
    let hedges = table.planHedges(
      now: now, after: delay,
      allowance: hedgeBudget.allowance(at: Array(origins), now: now)
    ) { id in
      exchanges[id]?.receiver.isServed == true
    }
    hedgeBudget.noteRequests(0, hedges: hedges.count)
    for segment in hedges { send(segment) }
  }

  /// A request has failed.
  ///
  /// - Returns: whether it was a hedge, so that the request beside which it was sent goes on.
  func dropFailedHedge(_ id: Int) -> Bool {
    guard table[id]?.hedgeOf != nil else { return false }
    table.remove(id)
    return true
  }

  /// A segment has brought bytes: ends the request that was to bring the same.
  func endRival(of id: Int) {
    guard let rival = table.endRival(of: id) else { return }
    guard let exchange = exchanges[rival] else { return table.remove(rival) }
    // What it has gathered is stored when it ends.
    client.cancel(exchange.id)
  }
}
