internal import CCurl
internal import Glibc
internal import HTTPTransferCore
internal import HTTPTypes

/// An exchange in progress: its easy handle, its redirects so far, and its receiver.
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
  private(set) var easy: UnsafeMutableRawPointer
  private(set) var url: RemoteURL
  /// The method and body of the current hop; a redirect may change them to a `GET`.
  private var method: HTTPRequest.Method
  private(set) var body: (any ExchangeBody)?
  /// Whether credentials were sent in response to a 401.
  private var isChallenged = false
  private(set) var metrics = ExchangeMetrics()
  private var headerList: UnsafeMutablePointer<curl_slist>?
  private var parser = HeadParser()
  private var disposition = ExchangeDisposition.proceed
  private var discardedByteCount = 0
  private(set) var redirect: RemoteURL?
  /// Whether no socket could be created.
  var lacksDescriptors = false
  var failure: ExchangeError?
  private(set) var sawHead = false
  private var redirectCount = 0
  let errorText: UnsafeMutablePointer<CChar>
  var isCancelled = false
  /// The sockets of this hop's connection attempts.
  var openedSockets: [CInt] = []
  /// Whether the connection to reuse has unsolicited bytes.
  var hasStrayBytes = false
  /// Whether to use a new connection, because a reused one had unsolicited bytes.
  private var wantsFreshConnection = false
  /// The sockets of the client's connections, by their local ports.
  let sockets: ConnectionSockets
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
  var headDeadline: ContinuousClock.Instant?
  var addressGuard: AddressGuard
  /// The route of the current hop.
  private(set) var way = ProxySettings.Choice()
  /// The proxies that could not be reached for the current URL.
  private(set) var failedRoutes: Set<ProxyList.Route> = []
  /// Called when a route has failed, with all failed routes of this URL; returns whether there is
  /// another one.
  var onRouteFailure: (ProxyList.Route, Set<ProxyList.Route>, RemoteURL) -> Bool = { _, _, _ in
    false
  }
  /// When the request of the current hop was sent; nil before that, and once a head has arrived
  /// over its route.
  var unansweredSince: ContinuousClock.Instant?
  /// Called when a head has arrived through a proxy.
  var onProxyAnswer: (ProxyList.Route) -> Void = { _ in }
  private var stallTimeout: Duration?
  /// The head of a 417, after which libcurl sends the body without an expectation.
  private var refusedExpectation: HTTPResponse?
  /// Whether the body was requested again since then.
  private var isResending = false
  /// How often libcurl may still send the request of the current hop, if it must not be repeated.
  private var remainingSends = 1
  /// Whether the server of the current hop has set a cookie.
  private(set) var hasSetCookie = false

  init(
    id: ExchangeID, request: ExchangeRequest, receiver: any ExchangeReceiver,
    easy: UnsafeMutableRawPointer, addressGuard: AddressGuard, sockets: ConnectionSockets,
    throttle: BodyThrottle
  ) {
    self.sockets = sockets
    self.throttle = throttle
    self.id = id
    self.request = request
    self.receiver = receiver
    self.easy = easy
    self.url = request.url
    method = request.method
    body = request.body
    stallTimeout = request.stallTimeout
    self.addressGuard = addressGuard
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  deinit {
    curl_slist_free_all(headerList)
    errorText.deallocate()
  }

  /// Takes a new handle for the next hop; false if there is none.
  func renewHandle() -> Bool {
    guard let fresh = curl_easy_init() else { return false }
    closeHandle()
    easy = fresh
    return true
  }

  /// Frees the handle, which must be in no multi handle.
  ///
  /// Only ``renewHandle()`` may be called afterwards.
  func closeHandle() { curl_easy_cleanup(easy) }

  /// Prepares the easy handle, a new one, for the current URL; call it before each hop.
  ///
  /// - Parameters:
  ///   - configuration: the client's configuration.
  ///   - share: the state that the client's handles share.
  ///   - neighbourCount: the number of exchanges in progress, including this one.
  ///   - way: the proxy of the request, if any.
  func prepare(
    configuration: HTTPClientConfiguration, share: UnsafeMutableRawPointer?,
    neighbourCount: Int, way: ProxySettings.Choice
  ) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = httpfs_easy_set_callbacks(easy, receiveHeaderLine, receiveBodyPiece, context)
    _ = httpfs_easy_set_connection_callbacks(easy, openConnection, beginRequest, context)
    addressGuard.begin(hop: redirectCount, isProxied: way.isProxied, host: url.host)
    _ = addressGuard.permitsHost()
    self.way = way
    headDeadline = nil
    unansweredSince = nil
    set(CURLOPT_ERRORBUFFER, pointer: errorText)
    set(CURLOPT_URL, url.withoutUserInfo)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    set(CURLOPT_NOSIGNAL, 1)
    // The head of a proxy's response to CONNECT is not the response.
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    set(CURLOPT_FOLLOWLOCATION, 0)
    // Not for uploads: if a server responds before the end, libcurl 7.88 loses the response because
    // of the stream's reset after it.
    set(
      CURLOPT_HTTP_VERSION,
      configuration.usesHTTP2 && body == nil ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
    set(CURLOPT_PIPEWAIT, 0)
    // A cancelled exchange must not block the network thread until the resolver's thread ends.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    if noticesDeadPath {
      set(CURLOPT_TCP_KEEPIDLE, Self.keepAliveIdleSeconds)
      set(CURLOPT_TCP_KEEPINTVL, Self.keepAliveIntervalSeconds)
    }
    // Read larger pieces from the socket, less often; libcurl still passes on at most 16 KiB at a
    // time. Many concurrent exchanges share the bandwidth and the memory, so each reads less.
    set(CURLOPT_BUFFERSIZE, max(64 << 10, (1 << 20) / max(2, neighbourCount)))
    set(CURLOPT_CONNECTTIMEOUT_MS, Self.number(request.connectTimeout / .milliseconds(1)))
    setTrust(configuration)
    setRoute(configuration, way)
    setStallTimeout(stallTimeout)
    if let share { set(CURLOPT_SHARE, pointer: share) }
    // Enables the cookie engine without reading a file.
    if configuration.keepsCookies { set(CURLOPT_COOKIEFILE, "") }
    // An idle connection may be dead, which is only noticed after sending the request.
    if wantsFreshConnection || !method.isRepeatable { set(CURLOPT_FRESH_CONNECT, 1) }
    remainingSends = 1
    hasSetCookie = false
    openedSockets = []
    if method == .head { set(CURLOPT_NOBODY, 1) }
    setBody(context)
    if method != .get && method != .head {
      set(CURLOPT_CUSTOMREQUEST, method.rawValue)
    }
    let isTrusted = isAtConfidentialOrigin
    let mayAuthenticate = isChallenged || !request.authenticatesOnChallenge
    if isTrusted, mayAuthenticate, let userInfo = request.userInfo {
      let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      set(CURLOPT_HTTPAUTH, basicAuthentication)
      set(CURLOPT_USERNAME, URLResolver.decoded(parts[0]))
      set(CURLOPT_PASSWORD, parts.count > 1 ? URLResolver.decoded(parts[1]) : "")
    }
    setHeaders(isTrusted: isTrusted, userAgent: configuration.userAgent)
    errorText[0] = 0
    parser = HeadParser()
    redirect = nil
    lacksDescriptors = false
    disposition = .proceed
    discardedByteCount = 0
    if let body, !body.rewind() {
      failure = ExchangeError(code: .unreadableBody, url: url, detail: "it cannot be sent again")
    }
  }

  /// Bytes per second: a slower exchange is useless, but would never time out.
  private static let leastSpeed = 64

  /// Sets how long almost no bytes may move; nil for no limit.
  func setStallTimeout(_ timeout: Duration?) {
    stallTimeout = timeout
    set(CURLOPT_LOW_SPEED_LIMIT, timeout == nil ? 0 : Self.leastSpeed)
    set(CURLOPT_LOW_SPEED_TIME, timeout.map { Self.number($0 / .seconds(1)) } ?? 0)
  }

  /// Converts a time for libcurl: rounded up, at least 1, and small enough for any platform's long.
  private static func number(_ value: Double) -> Int { Int(min(1e9, max(1, value.rounded(.up)))) }

  private func setBody(_ context: UnsafeMutableRawPointer) {
    guard let body else { return }
    set(CURLOPT_UPLOAD, 1)
    _ = httpfs_easy_set_offset(
      easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.byteCount ?? -1))
    set(CURLOPT_UPLOAD_BUFFERSIZE, 256 * 1024)
    _ = httpfs_easy_set_body_callbacks(easy, sendBodyPiece, rewindBody, context)
  }

  private func setHeaders(isTrusted: Bool, userAgent: String) {
    curl_slist_free_all(headerList)
    headerList = nil
    var fields = request.fields
    if isTrusted { fields.append(contentsOf: request.confidentialFields) }
    if method != request.method {
      // These fields described a body that a redirect has removed.
      for name in Self.bodyFields { fields[name] = nil }
    }
    // The body determines its length. Another length would cut it, and leave the rest on the
    // connection.
    fields[.contentLength] = nil
    fields[.transferEncoding] = nil
    if fields[.userAgent] == nil { fields[.userAgent] = userAgent }
    // A byte range of a coded representation would be useless.
    if request.decodesContent {
      // All codings that this libcurl can decode.
      set(CURLOPT_ACCEPT_ENCODING, "")
    } else if fields[.acceptEncoding] == nil {
      fields[.acceptEncoding] = "identity"
    }
    if let range = request.range { fields[.range] = range.rangeField }
    for field in fields {
      // Copy bytes: an entity tag is sent exactly as received.
      var line = Array(field.name.rawName.utf8)
      field.withUnsafeBytesOfValue { value in
        // An empty value needs a semicolon; otherwise libcurl drops the field.
        line += value.isEmpty ? Array(";".utf8) : Array(": ".utf8) + value
      }
      line.append(0)
      let longer = line.withUnsafeBytes { bytes in
        curl_slist_append(headerList, bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
      }
      if let longer { headerList = longer }
    }
    set(CURLOPT_HTTPHEADER, pointer: headerList)
  }

  /// Whether libcurl may send the request of the current hop; called before each attempt.
  ///
  /// libcurl repeats a request by itself if a reused connection brings no response. A request that
  /// must not be repeated is sent once, and once more after a 417 has refused it without processing
  /// it.
  func maySend() -> Bool {
    guard method.isRepeatable || remainingSends > 0 else { return false }
    remainingSends -= 1
    return true
  }

  // MARK: Callbacks

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
      unansweredSince = nil
      if way.isProxied { onProxyAnswer(way.route) }
      noteRetryAfter(head)
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
    if request.maximumRedirects > 0, Self.redirectStatuses.contains(head.status.code),
      let location = head.headerFields.bytes(of: .location)
    {
      disposition = .discard
      return follow(location, status: head.status.code)
    }
    if head.status.code == 401, mayAnswerChallenge(head.headerFields) {
      disposition = .discard
      isChallenged = true
      redirect = url
      return true
    }
    if head.status.code == 417, body != nil, refusedExpectation == nil {
      // libcurl starts again by itself: the next head counts.
      refusedExpectation = head
      remainingSends += 1
      parser = HeadParser()
      disposition = .discard
      return true
    }
    sawHead = true
    disposition = receiver.receive(head: head, from: url, transfer: id)
    return disposition != .stop
  }

  /// A server's Retry-After applies to all of its resources.
  private func noteRetryAfter(_ head: HTTPResponse) {
    guard head.status.code == 429 || head.status.code == 503,
      let delay = RetryAfter.delay(head.headerFields, now: Int64(time(nil)))
    else { return }
    onRetryAfter(url.normalizedOrigin, min(delay, request.retryAfterCeiling))
  }

  private static let redirectStatuses: Set<Int> = [301, 302, 303, 307, 308]

  /// The fields that describe a body, without which they make no sense.
  private static let bodyFields: [HTTPField.Name] = [
    .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation,
  ]

  /// Whether a 401 requests the credentials that were withheld so far.
  private func mayAnswerChallenge(_ fields: HTTPFields) -> Bool {
    request.authenticatesOnChallenge && !isChallenged && request.userInfo != nil
      && url.origin == request.confidentialOrigin
      && fields[fields: .wwwAuthenticate].contains { field in
        // The tokens of other schemes may be long.
        field.withUnsafeBytesOfValue { $0.count <= HTTPFields.readableLimit }
          && field.value.lowercased().contains("basic")
      }
  }

  private func follow(_ location: [UInt8], status: Int) -> Bool {
    redirectCount += 1
    guard redirectCount <= request.maximumRedirects else {
      failure = ExchangeError(
        code: .tooManyRedirects, url: url, detail: "\(request.maximumRedirects) were followed")
      return false
    }
    guard let text = URLResolver.resolve(location, against: url) else {
      failure = ExchangeError(
        code: .malformedResponse, url: url, detail: "the Location field is not a URL")
      return false
    }
    guard text.utf8.count <= RemoteURL.foreignByteLimit else {
      failure = ExchangeError(
        code: .forbiddenRedirect, url: url,
        detail: "to a URL of more than \(RemoteURL.foreignByteLimit >> 10) KiB")
      return false
    }
    let target: RemoteURL
    do {
      target = try RemoteURL(text)
    } catch {
      failure = ExchangeError(code: .forbiddenRedirect, url: url, detail: "\(error)")
      return false
    }
    if url.scheme == "https" && target.scheme != "https" {
      failure = ExchangeError(
        code: .forbiddenRedirect, url: url, detail: "from https to http://\(target.authority)")
      return false
    }
    if request.staysInOrigin, target.normalizedOrigin != url.normalizedOrigin {
      failure = ExchangeError(
        code: .forbiddenRedirect, url: url, detail: "to another server, \(target.origin)")
      return false
    }
    redirect = target
    if status == 303 || (status < 303 && !request.keepsMethodOnRedirect), method != .head {
      method = .get
      body = nil
    }
    receiver.redirected(to: target, status: status)
    return true
  }

  /// Takes a piece of the body.
  ///
  /// - Returns: the result for libcurl's write callback: the count, the sign for a pause, or 0 to
  ///   end the exchange.
  func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    if !sawHead, case .proceed = disposition {
      // libcurl has recognized the end of a head although there is none.
      failure = ExchangeError(
        code: .malformedResponse, url: url, detail: "a body without a response head")
      return 0
    }
    switch disposition {
    case .proceed, .pause:
      // While libcurl decodes a body, pausing makes it store the decoded rest of its buffer in
      // memory, which may be a thousand times as much.
      guard request.decodesContent || mayTakePiece(bytes.count) else { return pauseSign }
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

  /// Whether the received bytes are dropped.
  var isDiscarding: Bool {
    guard case .discard = disposition else { return false }
    return !isResending || sawHead || redirect != nil
  }

  /// Fills the buffer with the next bytes of the request's body; returns the result for libcurl's
  /// read callback.
  func readBody(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard failure == nil, let body else { return abortSign }
    isResending = refusedExpectation != nil
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

  func rewindRequestBody() -> Bool { body?.rewind() ?? false }

  // MARK: The end of a hop

  enum Outcome {
    /// Start again at the URL of the redirect; call ``prepare(configuration:)`` first.
    case follow
    case done(ExchangeCompletion)
  }

  /// The next step after libcurl has reported `code` for this handle.
  func finishHop(_ code: CURLcode) -> Outcome {
    collectMetrics()
    hop += 1
    if !sawHead, redirect == nil, !isCancelled, let head = refusedExpectation {
      disposition = receiver.receive(head: head, from: url, transfer: id)
      return .done(.finished)
    }
    if isCancelled { return .done(.cancelled) }
    if hasStrayBytes {
      hasStrayBytes = false
      wantsFreshConnection = true
      return .follow
    }
    if let failure { return .done(.failed(failure)) }
    if let target = redirect {
      // A long body of a redirect was aborted on purpose. Only its connection is lost.
      redirect = nil
      url = target
      failedRoutes = []
      metrics.requests += 1
      return .follow
    }
    if let route = failedRoute(code) {
      failedRoutes.insert(route)
      // Nothing was sent to the server, so the same request can take another route.
      if onRouteFailure(route, failedRoutes, url) { return .follow }
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

  private func error(for code: CURLcode) -> ExchangeError {
    var detail = String(cString: errorText)
    if detail.isEmpty { detail = String(cString: curl_easy_strerror(code)) }
    if code == CURLE_COULDNT_CONNECT, let refusedAddress { return refusedAddress }
    if code == CURLE_COULDNT_CONNECT {
      var number = 0
      _ = httpfs_easy_get_long(easy, CURLINFO_OS_ERRNO, &number)
      if [ENETUNREACH, EHOSTUNREACH, ENETDOWN].contains(CInt(truncatingIfNeeded: number)) {
        return ExchangeError(code: .noRoute, url: url, detail: detail)
      }
      if lacksDescriptors {
        return ExchangeError(
          code: .outOfResources, url: url, detail: "no descriptor is left for a connection")
      }
    }
    if code == CURLE_OUT_OF_MEMORY, parser.isWithinHead {
      // libcurl's error for a line that exceeds its buffer (CURL_MAX_HTTP_HEADER).
      return ExchangeError(code: .headTooLarge, url: url, detail: "a line of more than 100 KiB")
    }
    if code == CURLE_OPERATION_TIMEDOUT {
      var connectTime: curl_off_t = 0
      _ = httpfs_easy_get_offset(easy, CURLINFO_PRETRANSFER_TIME_T, &connectTime)
      if connectTime == 0 {
        return ExchangeError(code: .connectionTimedOut, url: url, detail: detail)
      }
      if let timeout = request.stallTimeout { detail = "no byte moved for \(timeout)" }
    }
    return ExchangeError(curlCode: code, url: url, detail: detail)
  }

  /// Adds the metrics of the current hop; call it before its handle is prepared again or freed.
  func collectMetrics() {
    var connections = 0
    _ = httpfs_easy_get_long(easy, CURLINFO_NUM_CONNECTS, &connections)
    metrics.newConnections += connections
    var microseconds: curl_off_t = 0
    _ = httpfs_easy_get_offset(easy, CURLINFO_STARTTRANSFER_TIME_T, &microseconds)
    metrics.timeToFirstByte += .microseconds(Int64(microseconds))
    var byteCount: curl_off_t = 0
    _ = httpfs_easy_get_offset(easy, CURLINFO_SIZE_DOWNLOAD_T, &byteCount)
    metrics.rawByteCount = Int64(byteCount)
  }

  /// Whether the current hop goes to the origin to which the request's credentials belong.
  var isAtConfidentialOrigin: Bool { url.origin == request.confidentialOrigin }

  // MARK: Options

  func set(_ option: CURLoption, _ value: Int) {
    _ = httpfs_easy_set_long(easy, option, value)
  }

  func set(_ option: CURLoption, _ value: String) {
    _ = httpfs_easy_set_string(easy, option, value)
  }

  func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) {
    _ = httpfs_easy_set_pointer(easy, option, pointer)
  }
}
