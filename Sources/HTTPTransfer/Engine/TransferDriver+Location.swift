internal import HTTPTransferCore

/// Which URL the next request goes to, while URLs expire.
extension TransferDriver {
  /// Which URL is asked, where there is one server; of several each has its own.
  private var location: ResourceLocation {
    get { locations[0] }
    set { locations[0] = newValue }
  }

  /// The URL that the request of a segment to a mirror goes to; nil where the segment waits for one, and is
  /// sent then.
  func place(_ segment: SegmentTable.Segment, at mirror: Int) -> RemoteURL? {
    let now = ContinuousClock.now
    guard mirrors.count == 1 else {
      let followsAgain = locations[mirror].takeTargetRenewal(now: now)
      return followsAgain ? locations[mirror].listed : locations[mirror].current
    }
    if location.takeSignerTurn(now: now) { sign() }
    guard let base = location.base else {
      unplaced.append(segment.id)
      return nil
    }
    if let redirected = location.redirected {
      // One request finds out where the bytes will be, the others go on meanwhile.
      guard scout == nil, location.takeTargetRenewal(now: now) else { return redirected }
      scout = segment.id
    } else if isLost {
      guard scout == nil else {
        unplaced.append(segment.id)
        return nil
      }
      scout = segment.id
    }
    return base
  }

  /// A request was answered with what it asked for.
  func noteAnswer(from url: RemoteURL, to exchange: SegmentExchange) {
    let isFromBase = exchange.asked == locations[exchange.mirror].base
    locations[exchange.mirror].noteAnswer(
      from: url, asked: exchange.asked, now: .now, sinceEpoch: timeSinceEpoch())
    guard isFromBase, isLost || scout != nil else { return }
    isLost = false
    scout = nil
    sendUnplaced()
  }

  /// A request was refused.
  func noteRefusal(of exchange: SegmentExchange) -> ResourceLocation.Refusal {
    let refusal = locations[exchange.mirror].noteRefusal(of: exchange.asked, now: .now)
    // From now on one request is to find the way for all.
    if mirrors.count == 1, case .expired = refusal, location.redirected == nil { isLost = true }
    return refusal
  }

  /// The exchange of a segment has ended: if it was to find the way, another one may.
  func scoutEnded(_ id: Int) {
    guard scout == id, exchanges[id] == nil else { return }
    scout = nil
    sendUnplaced()
  }

  private func sendUnplaced() {
    let waiting = unplaced
    unplaced = []
    guard phase == .running else { return }
    for id in waiting where exchanges[id] == nil {
      if let segment = table[id], !segment.isWaiting { send(segment) }
    }
  }

  // MARK: The signer

  private func sign() {
    guard let signer = request.signer, !isSigning else { return }
    isSigning = true
    signer.sign(request.url, name: request.name) { [self] result in
      client.perform { [self] in signerAnswered(result) }
    }
  }

  private func signerAnswered(_ result: Result<RemoteURL, URLSigningError>) {
    isSigning = false
    guard phase == .running || phase == .paused else { return }
    switch result {
    case .success(let url):
      signerFailureCount = 0
      location.noteSigned(url, now: .now, sinceEpoch: timeSinceEpoch())
      isLost = false
      sendUnplaced()
    case .failure(let failure):
      // Nobody waits for it: the last URL is used until it refuses.
      guard !unplaced.isEmpty, phase == .running else { return }
      signerFailureCount += 1
      let error = TransferError(.other, request.url, failure.description, isTransient: true)
      guard signerFailureCount <= request.retryCount else { return fail(error) }
      let delay = request.retryPolicy.delay(
        failures: signerFailureCount, retryAfter: nil, random: .random(in: 0..<1))
      monitor.emit(.retrying(error, attempt: signerFailureCount, after: delay))
      if exchanges.isEmpty { monitor.update { $0.state = .waiting } }
      client.schedule(after: delay) { [self] in
        if phase == .running, !unplaced.isEmpty { sign() }
      }
    }
  }
}
