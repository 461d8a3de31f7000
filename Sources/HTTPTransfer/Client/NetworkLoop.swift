internal import CCurl

/// The network thread's own state and loop; nothing of it is seen by another thread.
final class NetworkLoop {
  /// How long the thread stays after the last transfer: longer than the pauses of a program that
  /// reads one file after another, short enough to be gone when nothing happens.
  private static let idleTime = Duration.seconds(10)

  /// How many idle easy handles are kept for the next transfers.
  private static let idleHandleLimit = 32

  private struct Timer {
    let due: ContinuousClock.Instant
    let work: @Sendable () -> Void
  }

  private let client: HTTPClient
  private let multi: MultiHandle
  private var transfers: [ExchangeID: ActiveExchange] = [:]
  private var idleHandles: [UnsafeMutableRawPointer] = []
  /// Descending by due time, so that the next one is taken off the end.
  private var timers: [Timer] = []
  private var idleSince: ContinuousClock.Instant?

  init(client: HTTPClient, multi: MultiHandle) {
    self.client = client
    self.multi = multi
  }

  private func cleanUpHandles() {
    for handle in idleHandles { curl_easy_cleanup(handle) }
    idleHandles = []
  }

  func run() {
    guard let pointer = multi.pointer else { return failEverything() }
    while true {
      for command in client.takeCommands() { execute(command, multi: pointer) }
      var running: Int32 = 0
      curl_multi_perform(pointer, &running)
      collect(pointer)
      let now = ContinuousClock.now
      runTimers(until: now)
      if transfers.isEmpty && timers.isEmpty {
        let since = idleSince ?? now
        idleSince = since
        if now - since >= Self.idleTime {
          // Before another thread can take over: the handles share the cookie jar with its.
          cleanUpHandles()
          if client.endThreadIfIdle() { return }
        }
      } else {
        idleSince = nil
      }
      // A command posted since `takeCommands` has set the wake-up, which ends the poll at once.
      curl_multi_poll(pointer, nil, 0, pollTimeout(now: now), nil)
      client.noteIdle(ContinuousClock.now - now)
    }
  }

  private func pollTimeout(now: ContinuousClock.Instant) -> Int32 {
    guard let next = timers.last else { return 1000 }
    let milliseconds = (next.due - now) / .milliseconds(1)
    return Int32(min(1000, max(0, milliseconds.rounded(.up))))
  }

  // MARK: Commands

  private func execute(_ command: HTTPClient.Command, multi: UnsafeMutableRawPointer) {
    switch command {
    case .start(let id, let request, let receiver):
      start(id, request, receiver, multi: multi)
    case .cancel(let id):
      if let transfer = transfers[id] { cancel(transfer, multi: multi) }
    case .unpause(let id):
      if let transfer = transfers[id] { curl_easy_pause(transfer.easy, CURLPAUSE_CONT) }
    case .setStallTimeout(let id, let timeout): transfers[id]?.setStallTimeout(timeout)
    case .endDiscarding(let id, let hop):
      if let transfer = transfers[id], transfer.hop == hop, transfer.isDiscarding {
        curl_multi_remove_handle(multi, transfer.easy)
        proceed(transfer, after: CURLE_OK, multi: multi)
      }
    case .cancelAll:
      for transfer in Array(transfers.values) { cancel(transfer, multi: multi) }
    case .perform(let work):
      work()
    case .schedule(let due, let work):
      let index = timers.partitioningIndex { $0.due <= due }
      timers.insert(Timer(due: due, work: work), at: index)
    }
  }

  private func start(
    _ id: ExchangeID, _ request: ExchangeRequest, _ receiver: any ExchangeReceiver,
    multi: UnsafeMutableRawPointer
  ) {
    guard let easy = idleHandles.popLast() ?? curl_easy_init() else {
      client.exchangeEnded()
      receiver.finish(
        .failed(ExchangeError(code: .outOfResources, url: request.url, detail: "curl_easy_init")),
        metrics: ExchangeMetrics())
      return
    }
    let transfer = ActiveExchange(id: id, request: request, receiver: receiver, easy: easy)
    transfer.onDiscard = { [client] hop in client.endDiscardingSoon(id, hop: hop) }
    transfers[id] = transfer
    begin(transfer, multi: multi)
  }

  private func begin(_ transfer: ActiveExchange, multi: UnsafeMutableRawPointer) {
    transfer.prepare(
      configuration: client.configuration, cookies: self.multi.cookies,
      neighbourCount: transfers.count)
    let code = curl_multi_add_handle(multi, transfer.easy)
    guard code == CURLM_OK else {
      let detail = String(cString: curl_multi_strerror(code))
      end(
        transfer,
        .failed(ExchangeError(code: .outOfResources, url: transfer.request.url, detail: detail)))
      return
    }
  }

  private func cancel(_ transfer: ActiveExchange, multi: UnsafeMutableRawPointer) {
    transfer.isCancelled = true
    transfer.collectMetrics()
    curl_multi_remove_handle(multi, transfer.easy)
    end(transfer, .cancelled)
  }

  /// Takes up what libcurl has finished.
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
      let transfer = Unmanaged<ActiveExchange>.fromOpaque(context).takeUnretainedValue()
      proceed(transfer, after: code, multi: multi)
    }
  }

  /// Follows a redirect, or ends.
  private func proceed(
    _ transfer: ActiveExchange, after code: CURLcode, multi: UnsafeMutableRawPointer
  ) {
    switch transfer.finishHop(code) {
    case .follow: begin(transfer, multi: multi)
    case .done(let completion): end(transfer, completion)
    }
  }

  private func end(_ transfer: ActiveExchange, _ completion: ExchangeCompletion) {
    transfers[transfer.id] = nil
    if idleHandles.count < Self.idleHandleLimit {
      // Drops what the handle points to: the transfer's callbacks, header list and error text.
      curl_easy_reset(transfer.easy)
      idleHandles.append(transfer.easy)
    } else {
      curl_easy_cleanup(transfer.easy)
    }
    client.exchangeEnded()
    transfer.receiver.finish(completion, metrics: transfer.metrics)
  }

  private func runTimers(until now: ContinuousClock.Instant) {
    while let next = timers.last, next.due <= now {
      timers.removeLast()
      next.work()
    }
  }

  /// There is no multi handle: whatever is asked for fails, and nothing waits forever.
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
        case .cancel, .unpause, .setStallTimeout, .endDiscarding, .cancelAll: break
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
