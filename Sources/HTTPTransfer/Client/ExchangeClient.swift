internal import CCurl
package import HTTPTransferCore
internal import Synchronization

/// A client with one network thread, on which libcurl's multi interface drives every exchange.
///
/// The thread starts with the first exchange or timer and ends after some time without work;
/// connections outlive it. All methods may be called from any thread and return at once.
package final class ExchangeClient: Sendable {
  package let configuration: TransferClientConfiguration
  private let mailbox = Mutex(Mailbox())
  private let multi: MultiHandle
  private let idleNanoseconds = Atomic<Int64>(0)
  private let totalRateLimit: RateLimit

  /// What the network thread has learned about origins.
  ///
  /// It outlives that thread, so it needs a lock, which is a leaf.
  let origins = Mutex(OriginTable())

  /// The proxies of requests.
  ///
  /// The network thread uses it; its lock is a leaf.
  let proxies: Mutex<ProxySettings>

  /// Buffers for receivers that collect the bodies of this client's exchanges.
  package let buffers = BufferPool()

  enum Command {
    case start(ExchangeID, ExchangeRequest, any ExchangeReceiver)
    case cancel(ExchangeID)
    case unpause(ExchangeID)
    case prioritize(ExchangeID)
    case setStallTimeout(ExchangeID, Duration?)
    case endDiscarding(ExchangeID, hop: Int)
    case openGate(ExchangeID)
    case perform(@Sendable () -> Void)
    case schedule(at: ContinuousClock.Instant, @Sendable () -> Void)
    case cancelAll
  }

  private struct Mailbox {
    var commands: [Command] = []
    var isThreadRunning = false
    /// Whether the network thread waits for its sockets, or is about to; no command has woken it.
    var isWaiting = false
    var lastID: UInt64 = 0
    var activeExchangeCount = 0
  }

  package init(configuration: TransferClientConfiguration = TransferClientConfiguration()) {
    self.configuration = configuration
    totalRateLimit = RateLimit(bytesPerSecond: configuration.rateLimit)
    proxies = Mutex(ProxySettings(configuration: configuration))
    multi = MultiHandle(configuration: configuration)
  }

  /// Starts `request`.
  ///
  /// The client calls `receiver` on the network thread and retains it until the end.
  @discardableResult
  package func start(_ request: ExchangeRequest, receiver: any ExchangeReceiver) -> ExchangeID {
    post { box in
      box.lastID += 1
      box.activeExchangeCount += 1
      let id = ExchangeID(rawValue: box.lastID)
      return (.start(id, request, receiver), id)
    }
  }

  /// Ends an exchange, whose receiver then finishes with ``ExchangeCompletion/cancelled``; does
  /// nothing if it has already ended.
  package func cancel(_ id: ExchangeID) {
    post { _ in (.cancel(id), ()) }
  }

  /// Resumes an exchange that has paused itself.
  package func unpause(_ id: ExchangeID) {
    post { _ in (.unpause(id), ()) }
  }

  /// A read now waits for an exchange that no read waited for before.
  package func prioritize(_ id: ExchangeID) {
    post { _ in (.prioritize(id), ()) }
  }

  /// Changes the stall timeout of an exchange in progress; nil for no limit.
  package func setStallTimeout(_ timeout: Duration?, of id: ExchangeID) {
    post { _ in (.setStallTimeout(id, timeout), ()) }
  }

  /// The time limit for reading the rest of an unwanted body, which is read so that the connection
  /// can be reused.
  private static let discardTimeout = Duration.milliseconds(500)

  /// Stops reading such a body if it has not ended by then.
  func endDiscardingSoon(_ id: ExchangeID, hop: Int) {
    schedule(after: Self.discardTimeout) { [weak self] in
      self?.post { _ in (.endDiscarding(id, hop: hop), ()) }
    }
  }

  /// Sends the deferred request after `delay`.
  func openGate(for id: ExchangeID, after delay: Duration) {
    schedule(after: delay) { [weak self] in
      self?.post { _ in (.openGate(id), ()) }
    }
  }

  /// Ends all exchanges that were started so far.
  package func cancelAll() {
    post { _ in (.cancelAll, ()) }
  }

  /// Runs `work` on the network thread soon, after everything that was posted before.
  package func perform(_ work: @escaping @Sendable () -> Void) {
    post { _ in (.perform(work), ()) }
  }

  /// Runs `work` on the network thread after `delay`.
  package func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
    let due = ContinuousClock.now + delay
    post { _ in (.schedule(at: due, work), ()) }
  }

  /// Sets the limit of body bytes per second that all exchanges together may receive and send from
  /// now on; nil for no limit.
  package func setRateLimit(_ bytesPerSecond: Int64?) {
    setRateLimit(bytesPerSecond, of: [totalRateLimit])
  }

  /// Sets the limits of current or future requests; nil for no limit.
  ///
  /// The limit for all together, ``setRateLimit(_:)``, applies as well.
  package func setRateLimit(_ bytesPerSecond: Int64?, of limits: [RateLimit]) {
    for limit in limits { limit.set(bytesPerSecond) }
    // Applies the new limit to exchanges that wait under the old one.
    perform {}
  }

  /// The limit for all exchanges together, in bytes per second; nil for no limit.
  package var rateLimit: Int64? { totalRateLimit.bytesPerSecond }

  /// How long the network thread has waited for its sockets so far, in seconds.
  ///
  /// While it hardly waits, this machine limits the transfers, and more connections would not help.
  package var idleSeconds: Double { Double(idleNanoseconds.load(ordering: .relaxed)) / 1e9 }

  func recordIdle(_ duration: Duration) {
    let nanoseconds = Int64(duration / .nanoseconds(1))
    idleNanoseconds.wrappingAdd(nanoseconds, ordering: .relaxed)
  }

  /// How many connections were worthwhile for downloads from `origin`; nil if unknown.
  package func learnedConnections(at origin: String) -> Int? {
    origins.withLock { $0.connections.connections(for: origin, today: daysSinceEpoch()) }
  }

  /// Records how many connections were worthwhile for downloads from `origin`.
  func recordConnections(
    at origin: String, _ update: (inout HostMemory, _ today: Int) -> Void
  ) {
    origins.withLock { update(&$0.connections, daysSinceEpoch()) }
  }

  /// How exchanges use the slots of `origin` now; nil if none has one.
  package func use(of origin: String) -> OriginUse? { origins.withLock { $0.uses[origin] } }

  /// The number of exchanges that were started and have not finished.
  package var activeExchangeCount: Int { mailbox.withLock { $0.activeExchangeCount } }

  // MARK: Thread

  private func post<Value>(
    _ body: (inout sending Mailbox) -> sending (Command, Value)
  ) -> Value {
    let (value, mustStart, mustWake) = mailbox.withLock { box in
      let (command, value) = body(&box)
      box.commands.append(command)
      let mustStart = !box.isThreadRunning
      box.isThreadRunning = true
      // A thread that does not wait takes the command before it does.
      let mustWake = box.isWaiting
      box.isWaiting = false
      return (value, mustStart, mustWake)
    }
    if mustStart {
      startThread()
    } else if mustWake {
      multi.wakeUp()
    }
    return value
  }

  private func startThread() {
    let isStarted = spawnThread(name: "httpfs-net", attempts: 200) { [self] in
      NetworkLoop(client: self, multi: multi).run()
    }
    // Without the thread, no request could ever be answered, not even with an error.
    precondition(isStarted, "the process cannot start a thread")
  }

  /// All commands posted since the last call; for the network thread.
  func takeCommands() -> [Command] {
    mailbox.withLock { box in
      box.isWaiting = false
      let commands = box.commands
      box.commands = []
      return commands
    }
  }

  /// Announces that the network thread is about to wait for its sockets.
  ///
  /// - Returns: whether it may: no command has been posted since ``takeCommands()``.
  func beginWaiting() -> Bool {
    mailbox.withLock { box in
      box.isWaiting = box.commands.isEmpty
      return box.isWaiting
    }
  }

  /// Whether the network thread may end: true once, when nothing was posted meanwhile.
  func endThreadIfIdle() -> Bool {
    mailbox.withLock { box in
      guard box.commands.isEmpty else { return false }
      box.isThreadRunning = false
      return true
    }
  }

  func exchangeEnded() {
    mailbox.withLock { $0.activeExchangeCount -= 1 }
  }
}
