internal import CCurl
internal import HTTPTransferCore
internal import Synchronization

/// The network thread's state and loop; no other thread uses it.
final class NetworkLoop {
  /// How long the thread stays after the last exchange: longer than the pauses of a program that
  /// reads one file after another, and short enough to end when nothing happens.
  private static let idleTime = Duration.seconds(10)

  private struct Timer {
    let due: ContinuousClock.Instant
    let work: @Sendable () -> Void
  }

  private let client: ExchangeClient
  private let multi: MultiHandle
  private var exchanges: [ExchangeID: ActiveExchange] = [:]
  private var queue: ExchangeQueue
  /// Descending by due time, so that the next one is last.
  private var timers: [Timer] = []
  private var idleSince: ContinuousClock.Instant?
  private let throttle = BodyThrottle()
  private var turns = BodyTurns()
  private var lastCheck = ContinuousClock.now

  init(client: ExchangeClient, multi: MultiHandle) {
    self.client = client
    self.multi = multi
    queue = ExchangeQueue(
      placeCount: max(1, client.configuration.maximumConnectionsPerHost),
      totalCount: MultiHandle.connectionLimit(client.configuration))
  }

  func run() {
    guard let pointer = multi.pointer else { return failEverything() }
    while true {
      for command in client.takeCommands() { execute(command, multi: pointer) }
      resumeThrottled()
      var running: Int32 = 0
      curl_multi_perform(pointer, &running)
      collect(pointer)
      let now = ContinuousClock.now
      runTimers(until: now)
      check(now: now, multi: pointer)
      startQueued(multi: pointer)
      if exchanges.isEmpty && timers.isEmpty {
        let since = idleSince ?? now
        idleSince = since
        if now - since >= Self.idleTime, client.endThreadIfIdle() { return }
      } else {
        idleSince = nil
      }
      // A command that is posted from now on ends the poll.
      let timeout = client.beginWaiting() ? pollTimeout(now: now) : 0
      curl_multi_poll(pointer, nil, 0, timeout, nil)
      client.recordIdle(ContinuousClock.now - now)
    }
  }

  private func pollTimeout(now: ContinuousClock.Instant) -> Int32 {
    if turns.hasWaiting { return 0 }
    let delays = [timers.last.map { $0.due - now }, throttle.delay()].compactMap(\.self)
    guard let delay = delays.min() else { return 1000 }
    return Int32(min(1000, max(0, (delay / .milliseconds(1)).rounded(.up))))
  }

  /// Resumes exchanges that have waited for this turn of the loop, or for a rate limit.
  private func resumeThrottled() {
    for id in turns.begin() { resume(id) }
    throttle.setLimit(client.rateLimit)
    while let id = throttle.next() { resume(id) }
  }

  private func resume(_ id: ExchangeID) {
    // In this call, libcurl offers the held bytes again.
    if let exchange = exchanges[id], !exchange.isHeld {
      curl_easy_pause(exchange.easy?.pointer, CURLPAUSE_CONT)
    }
  }

  // MARK: Commands

  private func execute(_ command: ExchangeClient.Command, multi: UnsafeMutableRawPointer) {
    switch command {
    case .start(let id, let request, let receiver):
      enqueue(ExchangeQueue.Entry(id: id, request: request, receiver: receiver))
      startQueued(multi: multi)
    case .cancel(let id):
      if let exchange = exchanges[id] {
        cancel(exchange, multi: multi)
      } else if let entry = queue.remove(id) {
        cancel(entry)
      }
    case .prioritize(let id): queue.update(id) { $0.priority = .demand }
    case .unpause(let id): resume(id)
    case .setStallTimeout(let id, let timeout):
      exchanges[id]?.setStallTimeout(timeout)
      queue.update(id) { $0.stallTimeout = timeout }
    case .openGate(let id):
      if let exchange = exchanges[id], exchange.isHeld { begin(exchange, multi: multi) }
    case .endDiscarding(let id, let hop):
      if let exchange = exchanges[id], exchange.hop == hop, exchange.isDiscarding {
        curl_multi_remove_handle(multi, exchange.easy?.pointer)
        proceed(exchange, after: CURLE_OK, multi: multi)
      }
    case .cancelAll:
      for entry in queue.removeAll() { cancel(entry) }
      for exchange in Array(exchanges.values) { cancel(exchange, multi: multi) }
    case .perform(let work):
      work()
    case .schedule(let due, let work):
      let index = timers.partitioningIndex { $0.due <= due }
      timers.insert(Timer(due: due, work: work), at: index)
    }
  }

  /// Lets an exchange wait for a slot, unless its gate refuses it: a server that is gone may have
  /// many slots that wait for connections.
  private func enqueue(_ entry: ExchangeQueue.Entry) {
    var entry = entry
    switch entry.request.gate?.permit(to: entry.request.url, isRedirected: false) {
    case .granted, nil: break
    case .probe: entry.connectTimeout = HopPermit.probeTimeout
    case .refused(let error):
      client.exchangeEnded()
      var metrics = ExchangeMetrics()
      metrics.requests = 0
      return entry.receiver.finish(.failed(error), metrics: metrics)
    }
    queue.append(entry)
  }

  /// Starts the exchanges that get a slot.
  private func startQueued(multi: UnsafeMutableRawPointer) {
    while let entry = queue.next() { start(entry, multi: multi) }
  }

  private func start(_ entry: ExchangeQueue.Entry, multi: UnsafeMutableRawPointer) {
    let (id, request, receiver) = (entry.id, entry.request, entry.receiver)
    guard let easy = EasyHandle() else {
      queue.leave(id)
      client.exchangeEnded()
      receiver.finish(
        .failed(ExchangeError(code: .outOfResources, url: request.url, detail: "curl_easy_init")),
        metrics: ExchangeMetrics())
      return
    }
    let addressGuard = client.origins.withLock {
      $0.uses.began(at: request.placeOrigin, now: .now)
      return $0.addressGuard(for: request)
    }
    let exchange = ActiveExchange(
      id: id, request: request, receiver: receiver, connectTimeout: entry.connectTimeout,
      easy: easy,
      addressGuard: addressGuard,
      sockets: self.multi.sockets,
      throttle: throttle)
    exchange.onRetryAfter = { [client] origin, delay in
      let now = ContinuousClock.now
      client.origins.withLock { $0.gate.close(origin, until: now + delay, now: now) }
    }
    exchange.onPublicAddress = { [client] origin in
      client.origins.withLock { $0.recordPublicAddress(of: origin) }
    }
    exchange.onRouteFailure = { [client] route, tried, url in
      client.proxies.withLock {
        $0.recordFailure(of: route, now: .now)
        return $0.hasRoute(besides: tried, for: url)
      }
    }
    exchange.onProxyAnswer = { [client] route in
      client.proxies.withLock { $0.recordAnswer(of: route, now: .now) }
    }
    exchange.mayTakePiece = { [unowned self] in turns.admits($0, of: id) }
    exchange.onDiscard = { [client] hop in client.endDiscardingSoon(id, hop: hop) }
    exchanges[id] = exchange
    begin(exchange, multi: multi)
  }

  /// Sends the request of the current hop, or defers it until its origin accepts requests.
  private func begin(_ exchange: ActiveExchange, multi: UnsafeMutableRawPointer) {
    let now = ContinuousClock.now
    if let error = exchange.enterHop() { return end(exchange, .failed(error)) }
    let origin = exchange.url.normalizedOrigin
    if let moment = client.origins.withLock({ $0.gate.opening(of: origin, now: now) }) {
      exchange.isHeld = true
      client.openGate(for: exchange.id, after: moment - now)
      return exchange.receiver.held(until: moment, exchange: exchange.id)
    }
    if exchange.isHeld {
      exchange.isHeld = false
      exchange.receiver.held(until: nil, exchange: exchange.id)
    }
    guard exchange.hop == 0 || exchange.renewHandle() else {
      end(
        exchange,
        .failed(
          ExchangeError(code: .outOfResources, url: exchange.url, detail: "curl_easy_init")))
      return
    }
    let way = client.proxies.withLock {
      $0.choice(for: exchange.url, avoiding: exchange.failedRoutes, now: now)
    }
    if let flaw = way.flaw {
      return end(
        exchange,
        .failed(ExchangeError(code: .unresolvedHost, url: exchange.url, detail: flaw)))
    }
    exchange.prepare(
      configuration: client.configuration, share: self.multi.shares.share(for: exchange.url),
      neighbourCount: exchanges.count, way: way)
    if let error = exchange.refusedAddress { return end(exchange, .failed(error)) }
    let code = curl_multi_add_handle(multi, exchange.easy?.pointer)
    guard code == CURLM_OK else {
      let detail = String(cString: curl_multi_strerror(code))
      end(
        exchange,
        .failed(ExchangeError(code: .outOfResources, url: exchange.request.url, detail: detail)))
      return
    }
    exchange.receiver.connecting()
  }

  /// The interval for looking at all exchanges.
  ///
  /// Timers for the deadlines of heads would leave one behind for every request.
  private static let checkInterval = Duration.milliseconds(500)

  private func check(now: ContinuousClock.Instant, multi: UnsafeMutableRawPointer) {
    guard now - lastCheck >= Self.checkInterval else { return }
    lastCheck = now
    recordReceived(now: now)
    endLateExchanges(now: now, multi: multi)
  }

  /// Records which origins have sent something since the last check, or have asked for a pause.
  private func recordReceived(now: ContinuousClock.Instant) {
    var origins: Set<String> = []
    for exchange in exchanges.values where exchange.takeReceived() || exchange.isHeld {
      origins.insert(exchange.request.placeOrigin)
    }
    guard !origins.isEmpty else { return }
    client.origins.withLock { [origins] in $0.uses.received(from: origins, now: now) }
  }

  /// Ends the exchanges whose heads are overdue, and those that connect to a server that is gone.
  private func endLateExchanges(now: ContinuousClock.Instant, multi: UnsafeMutableRawPointer) {
    let late = exchanges.values.filter { $0.isHeadLate(now: now) }
    for exchange in late {
      curl_multi_remove_handle(multi, exchange.easy?.pointer)
      exchange.failSlowHead()
      proceed(exchange, after: CURLE_OK, multi: multi)
    }
    for exchange in Array(exchanges.values) {
      guard let error = exchange.lateRefusal(now: now) else { continue }
      exchange.collectMetrics()
      curl_multi_remove_handle(multi, exchange.easy?.pointer)
      end(exchange, .failed(error))
    }
  }

  private func cancel(_ exchange: ActiveExchange, multi: UnsafeMutableRawPointer) {
    exchange.isCancelled = true
    if !exchange.isHeld {
      exchange.collectMetrics()
      curl_multi_remove_handle(multi, exchange.easy?.pointer)
      limitCookies(of: exchange)
    }
    end(exchange, .cancelled)
  }

  /// Ends an exchange that has not begun.
  private func cancel(_ entry: ExchangeQueue.Entry) {
    client.exchangeEnded()
    entry.receiver.finish(.cancelled, metrics: ExchangeMetrics())
  }

  /// Processes the handles that libcurl has finished.
  private func collect(_ multi: UnsafeMutableRawPointer) {
    var remaining: Int32 = 0
    while let message = curl_multi_info_read(multi, &remaining) {
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
        continue
      }
      let code = httpfs_message_result(message)
      var context: UnsafeMutableRawPointer?
      _ = httpfs_easy_get_pointer(easy, CURLINFO_PRIVATE, &context)
      curl_multi_remove_handle(multi, easy)
      guard let context else { continue }
      let exchange = Unmanaged<ActiveExchange>.fromOpaque(context).takeUnretainedValue()
      proceed(exchange, after: code, multi: multi)
    }
  }

  /// Drops cookies if there are too many; the exchange's handle must be in no multi handle.
  private func limitCookies(of exchange: ActiveExchange) {
    if exchange.hasSetCookie, client.configuration.keepsCookies, let easy = exchange.easy {
      multi.shares.limitCookies(of: exchange.url, by: easy.pointer)
    }
  }

  /// Follows a redirect, or ends the exchange.
  private func proceed(
    _ exchange: ActiveExchange, after code: CURLcode, multi: UnsafeMutableRawPointer
  ) {
    limitCookies(of: exchange)
    switch exchange.finishHop(code) {
    case .follow: begin(exchange, multi: multi)
    case .done(let completion): end(exchange, completion)
    }
  }

  private func end(_ exchange: ActiveExchange, _ completion: ExchangeCompletion) {
    exchanges[exchange.id] = nil
    let now = ContinuousClock.now
    if let (route, since) = exchange.silentProxy(now: now) {
      client.proxies.withLock { $0.recordSilence(of: route, since: since, now: now) }
    }
    queue.leave(exchange.id)
    client.origins.withLock { $0.uses.ended(at: exchange.request.placeOrigin) }
    exchange.closeHandle()
    exchange.receiver.finish(completion, metrics: exchange.metrics)
    // Last: code that waits for the last exchange to end also waits for its result.
    client.exchangeEnded()
  }

  private func runTimers(until now: ContinuousClock.Instant) {
    while let next = timers.last, next.due <= now {
      timers.removeLast()
      next.work()
    }
  }

  /// Without a multi handle, every request fails, so that nothing waits forever.
  private func failEverything() {
    repeat {
      for command in client.takeCommands() {
        switch command {
        case .start(_, let request, let receiver):
          client.exchangeEnded()
          receiver.finish(
            .failed(
              ExchangeError(code: .outOfResources, url: request.url, detail: "curl_multi_init")),
            metrics: ExchangeMetrics())
        case .perform(let work), .schedule(_, let work): work()
        case .cancel, .unpause, .prioritize, .setStallTimeout, .endDiscarding, .openGate,
          .cancelAll:
          break
        }
      }
    } while !client.endThreadIfIdle()
  }
}

extension Array {
  /// The first index whose element satisfies `predicate`, which holds for a suffix.
  fileprivate func partitioningIndex(where predicate: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if predicate(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
