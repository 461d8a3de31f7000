internal import CCurl
internal import Glibc
internal import HTTPTransferCore
internal import HTTPTypes

/// An exchange in progress: sends its hops one after another, and passes the final response on.
///
/// Confined to the network thread.
final class ActiveExchange {
  /// An unwanted body is read to its end up to this length, which is cheaper than a new connection;
  /// a longer one is aborted.
  static let discardLimit = 64 * 1024

  let id: ExchangeID
  let request: ExchangeRequest
  let receiver: any ExchangeReceiver
  /// Each hop gets a new handle.
  ///
  /// libcurl 7.88 keeps a pointer into a freed response head (`prevhead`), and uses it if the next
  /// head on the same handle begins with a folded line.
  private(set) var easy: EasyHandle?
  private var target: HopTarget
  private var connection: HopConnection
  private var route = HopRoute()
  private(set) var metrics = ExchangeMetrics()
  private var parser = HeadParser()
  private var disposition = ExchangeDisposition.proceed
  private var discardedByteCount = 0
  private var failure: ExchangeError?
  private var sawHead = false
  var isCancelled = false
  /// Whether the connection to reuse has unsolicited bytes.
  private var hasStrayBytes = false
  /// Whether to use a new connection, because a reused one had unsolicited bytes.
  private var wantsFreshConnection = false
  private let throttle: BodyThrottle
  /// The number of earlier redirects and repetitions with credentials.
  private(set) var hop = 0
  /// Called with the hop when an unwanted body begins.
  var onDiscard: (Int) -> Void = { _ in }
  /// Whether the request waits for its origin's gate and was not passed to libcurl.
  var isHeld = false
  /// Called when an origin asks to delay further requests.
  var onRetryAfter: (_ origin: String, _ delay: Duration) -> Void = { _, _ in }
  /// Whether a small piece of the body may pass in this turn of the loop; if not, the exchange
  /// continues in the next turn.
  var mayTakePiece: (_ byteCount: Int) -> Bool = { _ in true }
  /// Called before a request goes to a public address.
  var onPublicAddress: (_ origin: String) -> Void = { _ in }
  /// When the head of the current hop must be complete.
  private var headDeadline: ContinuousClock.Instant?
  /// Called when a route has failed, with all failed routes of this URL; returns whether there is
  /// another one.
  var onRouteFailure: (ProxyList.Route, Set<ProxyList.Route>, RemoteURL) -> Bool = { _, _, _ in
    false
  }
  /// When the request of the current hop was sent; nil before that, and once a head has arrived
  /// over its route.
  private var unansweredSince: ContinuousClock.Instant?
  /// Called when a head has arrived through a proxy.
  var onProxyAnswer: (ProxyList.Route) -> Void = { _ in }
  private var stallTimeout: Duration?
  /// How the server of the current hop has reacted to `Expect: 100-continue`.
  private var expectation = HopExpectation()
  /// Whether the server of the current hop has set a cookie.
  private(set) var hasSetCookie = false
  /// How long a connection for the current hop may take.
  private var connectTimeout: Duration
  /// When the current hop began to connect; nil once its request is ready to be sent.
  private var connectingSince: ContinuousClock.Instant?
  /// Whether the gate of the request must be asked about the current hop.
  private var needsPermit = false
  /// Whether the server has sent a head or a piece of a body since the last ``takeReceived()``.
  private var hasReceived = false

  init(
    id: ExchangeID, request: ExchangeRequest, receiver: any ExchangeReceiver,
    connectTimeout: Duration?, easy: EasyHandle, addressGuard: AddressGuard,
    sockets: ConnectionSockets, throttle: BodyThrottle
  ) {
    self.id = id
    self.request = request
    self.receiver = receiver
    self.easy = easy
    self.throttle = throttle
    target = HopTarget(request)
    connection = HopConnection(addressGuard: addressGuard, sockets: sockets)
    stallTimeout = request.stallTimeout
    self.connectTimeout = min(request.connectTimeout, connectTimeout ?? request.connectTimeout)
  }

  /// The URL of the current hop.
  var url: RemoteURL { target.url }

  /// The routes that have failed for it.
  var failedRoutes: Set<ProxyList.Route> { route.failed }

  /// Takes a new handle for the next hop; false if there is none.
  func renewHandle() -> Bool {
    guard let fresh = EasyHandle() else { return false }
    easy = fresh
    return true
  }

  /// Asks the gate of the request about the current hop, if a redirect has led to another origin.
  ///
  /// - Returns: why the exchange ends; nil if it may go on.
  func enterHop() -> ExchangeError? {
    guard needsPermit else { return nil }
    needsPermit = false
    connectTimeout = request.connectTimeout
    switch request.gate?.permit(to: url, isRedirected: true) {
    case .granted, nil: return nil
    case .probe:
      connectTimeout = min(connectTimeout, HopPermit.probeTimeout)
      return nil
    case .refused(let error):
      // It was counted when it was followed.
      metrics.requests -= 1
      return error
    }
  }

  /// Longer than a probe may take, so that a probe ends with an error of its own.
  private static let gonePatience = HopPermit.probeTimeout + .milliseconds(500)

  /// Why the current hop need not go on connecting: its server has turned out to be gone.
  func lateRefusal(now: ContinuousClock.Instant) -> ExchangeError? {
    guard let connectingSince, !isHeld, now - connectingSince >= Self.gonePatience else {
      return nil
    }
    return request.gate?.refusal(of: url)
  }

  /// Frees the handle, which must be in no multi handle.
  ///
  /// Only ``renewHandle()`` may be called afterwards.
  func closeHandle() { easy = nil }

  /// Prepares the easy handle, a new one, for the current URL; call it before each hop.
  ///
  /// - Parameters:
  ///   - configuration: the client's configuration.
  ///   - share: the state that the client's handles share.
  ///   - neighbourCount: the number of exchanges in progress, including this one.
  ///   - way: the proxy of the request, if any.
  func prepare(
    configuration: TransferClientConfiguration, share: UnsafeMutableRawPointer?,
    neighbourCount: Int, way: ProxySettings.Choice
  ) {
    guard let easy else { return }
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = httpfs_easy_set_callbacks(easy.pointer, receiveHeaderLine, receiveBodyPiece, context)
    _ = httpfs_easy_set_connection_callbacks(easy.pointer, openConnection, beginRequest, context)
    if target.body != nil {
      _ = httpfs_easy_set_body_callbacks(easy.pointer, sendBodyPiece, rewindBody, context)
    }
    target.begin()
    connection.begin(target, isProxied: way.isProxied)
    route.begin(way)
    HopOptions(
      configuration: configuration, request: request, target: target, way: way, share: share,
      neighbourCount: neighbourCount, needsFreshConnection: wantsFreshConnection,
      connectTimeout: connectTimeout, stallTimeout: stallTimeout
    ).apply(to: easy)
    headDeadline = nil
    unansweredSince = nil
    connectingSince = .now
    hasSetCookie = false
    expectation = HopExpectation()
    parser = HeadParser()
    disposition = .proceed
    discardedByteCount = 0
    if let body = target.body, !body.rewind() {
      failure = ExchangeError(code: .unreadableBody, url: url, detail: "it cannot be sent again")
    }
  }

  /// Sets how long almost no bytes may move; nil for no limit.
  func setStallTimeout(_ timeout: Duration?) {
    stallTimeout = timeout
    easy?.setStallTimeout(timeout)
  }

  // MARK: Callbacks

  /// Opens the socket of a connection; after -1, libcurl tries the host's next address.
  func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    connection.openSocket(
      address, noticesDeadPath: HopConnection.noticesDeadPath(request, target))
  }

  /// Called before a request is sent over a new or reused connection; false ends the exchange.
  func requestIsReady(address text: String, localPort: UInt16) -> Bool {
    // TLS may bring tickets, and only the server can have sent anything. The same holds if the
    // connection to the proxy is encrypted.
    if url.scheme == "http", !route.way.route.isEncrypted,
      !connection.isClean(localPort: localPort)
    {
      hasStrayBytes = true
      return false
    }
    let address = AddressGuard.address(text)
    if let address, !connection.permits(address) {
      failure = refusedAddress
      return false
    }
    guard connection.maySend(isRepeatable: target.method.isRepeatable) else {
      failure = ExchangeError(
        code: .connectionLost, url: url,
        detail: "no answer has come, and the request may have been carried out")
      return false
    }
    if let limit = request.headTimeout, target.body == nil { headDeadline = .now + limit }
    unansweredSince = .now
    if expectation.recordRequest() { disposition = .proceed }
    connectingSince = nil
    // A proxy accepts connections for servers that are gone.
    if connection.isNew, !route.way.isProxied { request.gate?.accepted(url) }
    receiver.requestSent()
    if let address, connection.recordRequest(to: address) {
      onPublicAddress(url.normalizedOrigin)
    }
    return true
  }

  /// Why the redirect to this host's address was refused.
  var refusedAddress: ExchangeError? { connection.refusedAddress(of: url) }

  /// Takes one line of a head; false ends the exchange.
  func takeHeaderLine(_ line: UnsafeRawBufferPointer) -> Bool {
    if !hasSetCookie, line.count > Self.cookieField.count {
      hasSetCookie = zip(line, Self.cookieField).allSatisfy { $0 | 0x20 == $1 }
    }
    switch parser.take(line) {
    case .more: return true
    case .tooLarge:
      failure = ExchangeError(code: .headTooLarge, url: url, detail: "")
      return false
    case .malformed:
      failure = ExchangeError(code: .malformedResponse, url: url, detail: "no status line")
      return false
    case .head(let head):
      hasReceived = true
      request.gate?.answered(url)
      unansweredSince = nil
      if route.way.isProxied { onProxyAnswer(route.way.route) }
      recordRetryAfter(head)
      let goesOn = take(head)
      if goesOn, isDiscarding { onDiscard(hop) }
      return goesOn
    }
  }

  /// `set-cookie:`, compared with the lower-case bit set, which `-` and `:` have anyway.
  ///
  /// Interim responses and trailers may contain the field too.
  private static let cookieField = Array("set-cookie:".utf8)

  private func take(_ head: HTTPResponse) -> Bool {
    if let coding = Self.unrequestedTransferCoding(of: head) {
      // libcurl would decode it, and keep the decoded bytes in memory while the exchange pauses.
      disposition = .discard
      failure = ExchangeError(
        code: .malformedResponse, url: url,
        detail: "the transfer coding '\(coding.prefix(32))' was not requested")
      return false
    }
    do throws(ExchangeError) {
      let redirect = try target.take(head)
      if let redirect { receiver.redirected(to: redirect, status: head.status.code) }
    } catch {
      disposition = .discard
      failure = error
      return false
    }
    if target.next != nil {
      disposition = .discard
      return true
    }
    if head.status.code == 417, target.body != nil, expectation.refuse(by: head) {
      // libcurl sends the request again: the next head counts.
      connection.recordUnprocessedRequest()
      parser = HeadParser()
      disposition = .discard
      return true
    }
    sawHead = true
    disposition = receiver.receive(head: head, from: url, exchange: id)
    return disposition != .stop
  }

  /// A transfer coding other than `chunked`, which no request accepts (RFC 9112 §7.4).
  private static func unrequestedTransferCoding(of head: HTTPResponse) -> String? {
    let codings = (head.headerFields[.transferEncoding] ?? "").split(separator: ",").map {
      $0.filter { $0 != " " && $0 != "\t" }.lowercased()
    }
    return codings.first { !["", "chunked", "identity"].contains($0) }
  }

  /// A server's Retry-After applies to all of its resources.
  private func recordRetryAfter(_ head: HTTPResponse) {
    guard head.status.code == 429 || head.status.code == 503,
      let delay = RetryAfter.delay(head.headerFields, now: Int64(time(nil)))
    else { return }
    onRetryAfter(url.normalizedOrigin, min(delay, request.retryAfterCeiling))
  }

  /// Takes a piece of the body.
  ///
  /// - Returns: the result for libcurl's write callback: the count, the sign for a pause, or 0 to
  ///   end the exchange.
  func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    hasReceived = true
    if !sawHead, case .proceed = disposition {
      // libcurl has recognized the end of a head although there is none.
      failure = ExchangeError(
        code: .malformedResponse, url: url, detail: "a body without a response head")
      return 0
    }
    switch disposition {
    case .proceed, .pause:
      guard mayTakePiece(bytes.count) else { return pauseSign }
      guard throttle.admits(bytes.count, of: id, under: request.rateLimit) else {
        receiver.throttled()
        return pauseSign
      }
      disposition = receiver.receive(body: bytes)
      switch disposition {
      case .pause:
        throttle.giveBack(bytes.count, under: request.rateLimit)
        return pauseSign
      case .stop: return 0
      case .proceed, .discard: return bytes.count
      }
    case .discard:
      discardedByteCount += bytes.count
      return discardedByteCount <= Self.discardLimit ? bytes.count : 0
    case .stop: return 0
    }
  }

  /// Whether the server has sent something since the last call.
  func takeReceived() -> Bool {
    defer { hasReceived = false }
    return hasReceived
  }

  /// Whether the received bytes are dropped.
  var isDiscarding: Bool {
    if case .discard = disposition { true } else { false }
  }

  /// Fills the buffer with the next bytes of the request's body; returns the result for libcurl's
  /// read callback.
  func readBody(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard failure == nil, let body = target.body else { return abortSign }
    let limit = request.rateLimit
    let wanted = throttle.sentPiece(of: buffer.count, under: limit)
    guard throttle.admits(wanted, of: id, under: limit) else { return pauseSign }
    switch body.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])) {
    case .bytes(let count):
      throttle.giveBack(wanted - count, under: limit)
      return count
    case .pause:
      throttle.giveBack(wanted, under: limit)
      return pauseSign
    case .failed:
      failure = ExchangeError(code: .unreadableBody, url: url, detail: "")
      return abortSign
    }
  }

  func rewindRequestBody() -> Bool { target.body?.rewind() ?? false }

  /// Whether the head of the current hop is overdue.
  func isHeadLate(now: ContinuousClock.Instant) -> Bool {
    guard let headDeadline, !isHeld, !sawHead, target.next == nil else { return false }
    return headDeadline <= now
  }

  /// Fails the exchange because the head is overdue.
  func failSlowHead() {
    let limit = request.headTimeout.map { " within \($0)" } ?? ""
    failure = ExchangeError(
      code: .timedOut, url: url, detail: "the head of the response was not complete\(limit)")
  }

  // MARK: Completion of a hop

  enum Outcome {
    /// Send the request of the next hop; call ``prepare(configuration:share:neighbourCount:way:)``
    /// first.
    case follow
    case done(ExchangeCompletion)
  }

  /// The next step after libcurl has reported `code` for this handle.
  func finishHop(_ code: CURLcode) -> Outcome {
    collectMetrics()
    hop += 1
    if isCancelled { return .done(.cancelled) }
    if hasStrayBytes {
      hasStrayBytes = false
      wantsFreshConnection = true
      return .follow
    }
    if !sawHead, target.next == nil, let head = expectation.lastWord {
      disposition = receiver.receive(head: head, from: url, exchange: id)
      return .done(.finished)
    }
    if let failure { return .done(.failed(failure)) }
    let origin = url.origin
    if target.advance() {
      needsPermit = url.origin != origin
      // A long body of a redirect was aborted on purpose. Only its connection is lost.
      route.forgetFailures()
      metrics.requests += 1
      return .follow
    }
    if let failed = failedRoute(code) {
      route.recordFailure(of: failed)
      // Nothing was sent to the server, so the same request can take another route.
      if onRouteFailure(failed, route.failed, url) { return .follow }
    }
    switch disposition {
    case .stop: return .done(.stopped)
    case .discard: return .done(.finished)
    case .proceed, .pause: break
    }
    if code == CURLE_OK {
      guard sawHead else {
        return .done(
          .failed(ExchangeError(code: .malformedResponse, url: url, detail: "no response head")))
      }
      return .done(.finished)
    }
    return .done(.failed(error(for: code)))
  }

  /// The route of the hop if it alone has failed, before a response.
  private func failedRoute(_ code: CURLcode) -> ProxyList.Route? {
    guard let easy, code != CURLE_OK, !sawHead, !connection.lacksDescriptors,
      refusedAddress == nil
    else { return nil }
    return route.failure(code, of: easy)
  }

  private func error(for code: CURLcode) -> ExchangeError {
    var detail = easy?.description(of: code) ?? ""
    if code == CURLE_COULDNT_CONNECT {
      if let refusedAddress { return refusedAddress }
      let number = CInt(truncatingIfNeeded: easy?.number(of: CURLINFO_OS_ERRNO) ?? 0)
      if [ENETUNREACH, EHOSTUNREACH, ENETDOWN].contains(number) {
        return ExchangeError(code: .noRoute, url: url, detail: detail)
      }
      if connection.lacksDescriptors {
        return ExchangeError(
          code: .outOfResources, url: url, detail: "no descriptor is left for a connection")
      }
    }
    if code == CURLE_OUT_OF_MEMORY, parser.isWithinHead {
      // libcurl's error for a line that exceeds its buffer (CURL_MAX_HTTP_HEADER).
      return ExchangeError(code: .headTooLarge, url: url, detail: "a line of more than 100 KiB")
    }
    if code == CURLE_SSL_CONNECT_ERROR, Self.isConnectionLoss(detail) {
      return ExchangeError(code: .connectionLost, url: url, detail: detail)
    }
    if code == CURLE_OPERATION_TIMEDOUT {
      if easy?.offset(of: CURLINFO_PRETRANSFER_TIME_T) == 0 {
        return ExchangeError(code: .connectionTimedOut, url: url, detail: detail)
      }
      if let timeout = request.stallTimeout { detail = "no byte moved for \(timeout)" }
    }
    return ExchangeError(curlCode: code, url: url, detail: detail)
  }

  /// Whether a handshake failed because the connection ended: the server may be restarting behind
  /// a forwarder that accepts connections.
  ///
  /// libcurl tells it from a refused handshake only in words.
  private static func isConnectionLoss(_ detail: String) -> Bool {
    ["SSL_ERROR_SYSCALL", "Connection reset", "unexpected eof"].contains { detail.contains($0) }
  }

  /// Adds the metrics of the current hop; call it before its handle is prepared again or freed.
  func collectMetrics() {
    guard let easy else { return }
    metrics.newConnections += easy.number(of: CURLINFO_NUM_CONNECTS)
    metrics.timeToFirstByte += .microseconds(easy.offset(of: CURLINFO_STARTTRANSFER_TIME_T))
    metrics.rawByteCount = easy.offset(of: CURLINFO_SIZE_DOWNLOAD_T)
    metrics.isMultiplexed = easy.number(of: CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_2_0
  }

  /// The proxy that has not answered the request and may hang, and when the request was sent.
  func silentProxy(
    now: ContinuousClock.Instant
  ) -> (route: ProxyList.Route, since: ContinuousClock.Instant)? {
    guard let since = unansweredSince else { return nil }
    return route.silentProxy(for: url, after: now - since).map { ($0, since) }
  }
}
