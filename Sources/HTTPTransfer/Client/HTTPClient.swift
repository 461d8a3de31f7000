internal import CCurl
public import HTTPTransferCore
internal import Synchronization

/// A client with one network thread, on which libcurl's multi interface drives every transfer.
///
/// The thread starts with the first transfer or timer and ends when there has been nothing to do
/// for a while; connections outlive it. All methods may be called from any thread and return at
/// once.
public final class HTTPClient: Sendable {
  public struct Configuration: Sendable {
    /// The `User-Agent` of requests that name none.
    public var userAgent: String
    /// A PEM file of certificate authorities to trust instead of the system's.
    public var certificateAuthorityFile: String?
    /// A directory of such authorities, named by their hashes (`openssl rehash`), likewise.
    public var certificateAuthorityDirectory: String?
    /// Whether https servers must prove who they are; without that anybody on the way can read and
    /// change what is transferred.
    public var verifiesServers = true
    /// What this client proves itself with to https servers that ask; shown to the origin of a request
    /// only, never to one that a redirect leads to.
    public var clientCertificate: ClientCertificate?
    /// Which addresses of a host are used.
    public var addressFamily = AddressFamily.any
    /// The name or address of the interface that connections leave from; nil for any.
    public var interface: String?
    /// The proxies to use; nil for those that the environment names, as libcurl reads it (`http_proxy`,
    /// `https_proxy`, `all_proxy`).
    public var proxies: ProxyList?
    /// The hosts that are reached without a proxy, separated by commas: names with all below them,
    /// addresses, blocks, or `*`; nil for those of the environment (`no_proxy`).
    public var proxyExceptions: String?
    /// Cookies to begin with, as lines of the Netscape cookie file format; libcurl sends each to the
    /// hosts and paths that it is for.
    public var cookies: [String] = []
    /// How many connections to one host may be open; further transfers wait.
    public var maximumConnectionsPerHost: Int
    /// How many connections may be open in all.
    public var maximumConnections: Int
    /// Whether HTTP/2 is offered to https servers, for requests without a body.
    ///
    /// Off, because parallel ranges then share one TCP connection and its throttle.
    public var usesHTTP2 = false
    /// How many body bytes a second all transfers together may receive and send at first, see
    /// ``HTTPClient/setRateLimit(_:)``; nil for as many as will come.
    public var rateLimit: Int64?
    /// Whether cookies are kept, in jars of this client's own, and sent to the origin that has set them.
    public var keepsCookies = true

    public init(
      userAgent: String = "httpfs/0.1", certificateAuthorityFile: String? = nil,
      maximumConnectionsPerHost: Int = 64, maximumConnections: Int = 256
    ) {
      self.userAgent = userAgent
      self.certificateAuthorityFile = certificateAuthorityFile
      self.maximumConnectionsPerHost = maximumConnectionsPerHost
      self.maximumConnections = maximumConnections
    }
  }

  /// A certificate with its private key, both PEM files, unencrypted.
  public struct ClientCertificate: Sendable, Hashable {
    public var certificateFile: String
    /// May be the same file.
    public var keyFile: String

    public init(certificateFile: String, keyFile: String) {
      self.certificateFile = certificateFile
      self.keyFile = keyFile
    }
  }

  public enum AddressFamily: Sendable, Hashable {
    case any, ipv4, ipv6
  }

  public let configuration: Configuration
  private let mailbox = Mutex(Mailbox())
  private let multi: MultiHandle
  private let idleNanoseconds = Atomic<Int64>(0)
  private let transferCount = Atomic<Int>(0)
  private let totalRateLimit: RateLimit

  /// What the network thread has learned of origins; it outlives that thread, hence the lock, a leaf.
  let origins = Mutex(OriginTable())

  /// Which way requests take; the network thread's, hence the lock, a leaf.
  let proxies: Mutex<ProxySettings>

  /// Buffers for whoever gathers the bodies of this client's exchanges.
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
    var lastID: UInt64 = 0
    var activeExchangeCount = 0
  }

  public init(configuration: Configuration = Configuration()) {
    self.configuration = configuration
    totalRateLimit = RateLimit(bytesPerSecond: configuration.rateLimit)
    proxies = Mutex(ProxySettings(configuration: configuration))
    multi = MultiHandle(configuration: configuration)
  }

  /// Starts `request`; `receiver` hears of it on the network thread and is kept until its end.
  @discardableResult
  package func start(_ request: ExchangeRequest, receiver: any ExchangeReceiver) -> ExchangeID {
    post { box in
      box.lastID += 1
      box.activeExchangeCount += 1
      let id = ExchangeID(rawValue: box.lastID)
      return (.start(id, request, receiver), id)
    }
  }

  /// Ends a transfer, whose receiver then finishes with ``ExchangeCompletion/cancelled``; nothing
  /// happens if it has ended already.
  package func cancel(_ id: ExchangeID) {
    post { _ in (.cancel(id), ()) }
  }

  /// Goes on with an exchange that has paused itself.
  package func unpause(_ id: ExchangeID) {
    post { _ in (.unpause(id), ()) }
  }

  /// Somebody waits for an exchange now that nobody waited for before.
  package func prioritize(_ id: ExchangeID) {
    post { _ in (.prioritize(id), ()) }
  }

  /// Changes how long an exchange under way may stand still; nil for as long as it takes.
  package func setStallTimeout(_ timeout: Duration?, of id: ExchangeID) {
    post { _ in (.setStallTimeout(id, timeout), ()) }
  }

  /// How long the end of a body that nobody wants may take, which is read for the connection's sake.
  private static let discardPatience = Duration.milliseconds(500)

  /// Ends the reading of such a body, if it has not come to its end by then.
  func endDiscardingSoon(_ id: ExchangeID, hop: Int) {
    schedule(after: Self.discardPatience) { [weak self] in
      self?.post { _ in (.endDiscarding(id, hop: hop), ()) }
    }
  }

  /// Sends after `delay` what is held back until then.
  func openGate(for id: ExchangeID, after delay: Duration) {
    schedule(after: delay) { [weak self] in
      self?.post { _ in (.openGate(id), ()) }
    }
  }

  /// Ends every transfer that has been started so far.
  package func cancelAll() {
    post { _ in (.cancelAll, ()) }
  }

  /// Runs `work` on the network thread, soon, and after what was posted before.
  package func perform(_ work: @escaping @Sendable () -> Void) {
    post { _ in (.perform(work), ()) }
  }

  /// Runs `work` on the network thread after `delay`.
  package func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
    let due = ContinuousClock.now + delay
    post { _ in (.schedule(at: due, work), ()) }
  }

  /// Sets how many body bytes a second all transfers together may receive and send, from now on; nil for
  /// as many as will come.
  public func setRateLimit(_ bytesPerSecond: Int64?) {
    setRateLimit(bytesPerSecond, of: [totalRateLimit])
  }

  /// Sets limits of transfers that are under way, or will be; nil for none.
  ///
  /// The limit for all together, ``setRateLimit(_:)``, holds beside them.
  public func setRateLimit(_ bytesPerSecond: Int64?, of limits: [RateLimit]) {
    for limit in limits { limit.set(bytesPerSecond) }
    // Exchanges that wait under the old limit go by the new one.
    perform {}
  }

  /// The limit for all transfers together, in bytes per second; nil where there is none.
  public var rateLimit: Int64? { totalRateLimit.bytesPerSecond }

  /// How long the network thread has waited for its sockets so far, in seconds.
  ///
  /// While it hardly waits, this machine is what limits the transfers, and more connections would
  /// not help.
  package var idleSeconds: Double { Double(idleNanoseconds.load(ordering: .relaxed)) / 1e9 }

  func noteIdle(_ duration: Duration) {
    let nanoseconds = Int64(duration / .nanoseconds(1))
    idleNanoseconds.wrappingAdd(nanoseconds, ordering: .relaxed)
  }

  /// The number of transfers that have begun and not ended: what an activity indicator shows.
  public var activeTransferCount: Int { transferCount.load(ordering: .relaxed) }

  func transferBegan() { transferCount.wrappingAdd(1, ordering: .relaxed) }
  func transferEnded() { transferCount.wrappingSubtract(1, ordering: .relaxed) }

  /// The number of exchanges that were started and have not finished.
  package var activeExchangeCount: Int { mailbox.withLock { $0.activeExchangeCount } }

  // MARK: The thread

  private func post<Value>(
    _ body: (inout sending Mailbox) -> sending (Command, Value)
  ) -> Value {
    let (value, mustStart) = mailbox.withLock { box in
      let (command, value) = body(&box)
      box.commands.append(command)
      let mustStart = !box.isThreadRunning
      box.isThreadRunning = true
      return (value, mustStart)
    }
    if mustStart {
      startThread()
    } else {
      multi.wakeUp()
    }
    return value
  }

  private func startThread() {
    let isStarted = spawnThread(name: "httpfs-net", attempts: 200) { [self] in
      NetworkLoop(client: self, multi: multi).run()
    }
    // Without it nothing that was asked for could ever be answered, not even that it has failed.
    precondition(isStarted, "the process cannot start a thread")
  }

  /// All commands posted since the last call; for the network thread.
  func takeCommands() -> [Command] {
    mailbox.withLock { box in
      let commands = box.commands
      box.commands = []
      return commands
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
