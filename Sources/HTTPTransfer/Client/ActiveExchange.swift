internal import CCurl
internal import Glibc
internal import HTTPTransferCore
internal import HTTPTypes

/// One transfer that the network thread has taken up, and is confined to: its easy handle, where its
/// redirects have led, and its receiver.
final class ActiveExchange {
  /// A body that nobody wants is read to its end up to this length, which is cheaper than a new
  /// connection; a longer one is cut.
  static let discardLimit = 64 * 1024

  let id: ExchangeID
  let request: ExchangeRequest
  let receiver: any ExchangeReceiver
  /// One for each hop: libcurl 7.88 keeps a pointer into the head of a response that it has freed
  /// (`prevhead`), and follows it where the next head on the same handle begins with a folded line.
  private(set) var easy: UnsafeMutableRawPointer
  private(set) var url: RemoteURL
  /// The method and body of the current hop: a redirect may turn them into a `GET`.
  private var method: HTTPRequest.Method
  private(set) var body: (any ExchangeBody)?
  /// Whether a 401 has been answered with credentials.
  private var isChallenged = false
  private(set) var metrics = ExchangeMetrics()
  private var headerList: UnsafeMutablePointer<curl_slist>?
  private var parser = HeadParser()
  private var disposition = ExchangeDisposition.proceed
  private var discardedByteCount = 0
  private(set) var redirect: RemoteURL?
  /// Whether no socket could be had.
  var lacksDescriptors = false
  var failure: ExchangeError?
  private(set) var sawHead = false
  private var redirectCount = 0
  let errorText: UnsafeMutablePointer<CChar>
  var isCancelled = false
  /// The sockets of this hop's connection attempts.
  var openedSockets: [CInt] = []
  /// Whether the connection that was to be used again brings bytes that nobody has asked for.
  var hasStrayBytes = false
  /// Whether no connection is to be used again, because one was not clean.
  private var wantsFreshConnection = false
  /// The sockets of the client's connections, by their local ports.
  let sockets: ConnectionSockets
  private let throttle: BodyThrottle
  /// How many redirects (and repetitions with credentials) came before.
  private(set) var hop = 0
  /// Called when a body begins that nobody wants, with the hop.
  var onDiscard: (Int) -> Void = { _ in }
  /// Whether the request waits for its origin's gate, and is not with libcurl.
  var isHeld = false
  /// Called when an origin asks for no request for a while.
  var onRetryAfter: (_ origin: String, _ delay: Duration) -> Void = { _, _ in }
  /// Whether a small piece of the body may pass in this turn of the loop; the exchange goes on in the next
  /// one where it may not.
  var mayTakePiece: (_ byteCount: Int) -> Bool = { _ in true }
  /// Called when a request is about to go to a public address.
  var onPublicAddress: (_ origin: String) -> Void = { _ in }
  /// When the head of the present hop must be complete.
  var headDeadline: ContinuousClock.Instant?
  var addressGuard: AddressGuard
  /// The way of the present hop.
  private(set) var way = ProxySettings.Choice()
  /// The proxies that could not be reached for the present URL.
  private(set) var failedRoutes: Set<ProxyList.Route> = []
  /// Called when a route has failed, with all that have for this URL; whether there is another one.
  var onRouteFailure: (ProxyList.Route, Set<ProxyList.Route>, RemoteURL) -> Bool = { _, _, _ in
    false
  }
  /// When the request of the present hop was sent; nil before, and once its way has brought a head.
  var unansweredSince: ContinuousClock.Instant?
  /// Called when a proxy has brought a head.
  var onProxyAnswer: (ProxyList.Route) -> Void = { _ in }
  private var stallTimeout: Duration?
  /// The head of a 417, after which libcurl sends the body without asking first.
  private var refusedExpectation: HTTPResponse?
  /// Whether the body has been asked for since then.
  private var isResending = false
  /// How often libcurl may still send the request of the present hop, where it may not be repeated.
  private var remainingSends = 1
  /// Whether the server of the present hop has set a cookie.
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

  /// Takes a new handle for the next hop; false where there is none.
  func renewHandle() -> Bool {
    guard let fresh = curl_easy_init() else { return false }
    closeHandle()
    easy = fresh
    return true
  }

  /// Gives the handle back, which is in no multi handle any more; no other call may follow but
  /// ``renewHandle()``'s.
  func closeHandle() { curl_easy_cleanup(easy) }

  /// Sets the easy handle, a new one, up for the current URL; call it before each hop.
  ///
  /// - Parameters:
  ///   - configuration: the client's.
  ///   - share: what the client's handles have in common.
  ///   - neighbourCount: how many exchanges are under way, this one included.
  ///   - way: whether the request goes through a proxy, and through which.
  func prepare(
    configuration: HTTPClient.Configuration, share: UnsafeMutableRawPointer?,
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
    // The head of a proxy's answer to CONNECT is not the response.
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    set(CURLOPT_FOLLOWLOCATION, 0)
    // Not for uploads: where a server answers before the end, libcurl 7.88 loses the answer to the
    // reset of the stream that follows it.
    set(
      CURLOPT_HTTP_VERSION,
      configuration.usesHTTP2 && body == nil ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
    set(CURLOPT_PIPEWAIT, 0)
    // A cancelled transfer must not wait for the resolver's thread, and everybody with it.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    if noticesDeadPath {
      set(CURLOPT_TCP_KEEPIDLE, Self.keepAliveIdleSeconds)
      set(CURLOPT_TCP_KEEPINTVL, Self.keepAliveIntervalSeconds)
    }
    // Fewer, larger reads of the socket; libcurl still hands over at most 16 KiB a call. Where many
    // exchanges share the line, each has less to read at a time, and they share the memory, too.
    set(CURLOPT_BUFFERSIZE, max(64 << 10, (1 << 20) / max(2, neighbourCount)))
    set(CURLOPT_CONNECTTIMEOUT_MS, Self.number(request.connectTimeout / .milliseconds(1)))
    setTrust(configuration)
    setRoute(configuration, way)
    setStallTimeout(stallTimeout)
    if let share { set(CURLOPT_SHARE, pointer: share) }
    // Switches the cookie engine on without reading a file.
    if configuration.keepsCookies { set(CURLOPT_COOKIEFILE, "") }
    // A connection that has idled may be gone, which shows when the request has been sent.
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

  /// Bytes per second: what is slower brings nothing to speak of, but would never time out.
  private static let leastSpeed = 64

  /// Sets how long next to nothing may move; nil for as long as it takes.
  func setStallTimeout(_ timeout: Duration?) {
    stallTimeout = timeout
    set(CURLOPT_LOW_SPEED_LIMIT, timeout == nil ? 0 : Self.leastSpeed)
    set(CURLOPT_LOW_SPEED_TIME, timeout.map { Self.number($0 / .seconds(1)) } ?? 0)
  }

  /// A time as libcurl takes it: rounded up, at least 1, and small enough for any platform's long.
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
      // They described the body that a redirect has done away with.
      for name in Self.bodyFields { fields[name] = nil }
    }
    // The body says how long it is: another length would cut it, and leave the rest on the connection.
    fields[.contentLength] = nil
    fields[.transferEncoding] = nil
    if fields[.userAgent] == nil { fields[.userAgent] = userAgent }
    // A byte range of a coded representation would be useless to a reader.
    if request.decodesContent {
      // All that this libcurl can undo.
      set(CURLOPT_ACCEPT_ENCODING, "")
    } else if fields[.acceptEncoding] == nil {
      fields[.acceptEncoding] = "identity"
    }
    if let range = request.range { fields[.range] = range.rangeField }
    for field in fields {
      // Byte by byte: an entity tag is sent as it came.
      var line = Array(field.name.rawName.utf8)
      field.withUnsafeBytesOfValue { value in
        // An empty value needs a semicolon, else libcurl drops the field.
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

  /// Whether libcurl may send the request of the present hop; asked each time it is about to.
  ///
  /// libcurl repeats a request on its own where a connection that was used before brings no answer. What
  /// must not be done twice is sent once, and once more where a 417 has refused it unseen.
  func maySend() -> Bool {
    guard method.isRepeatable || remainingSends > 0 else { return false }
    remainingSends -= 1
    return true
  }

  // MARK: Callbacks

  /// One line of a head; false ends the transfer.
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

  /// `set-cookie:`, which interim responses and trailers may hold, too; with the bit of lower case, which
  /// `-` and `:` have.
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
      // libcurl begins again by itself: the next head is the one that counts.
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

  /// A server that names a time does so for all of its resources.
  private func noteRetryAfter(_ head: HTTPResponse) {
    guard head.status.code == 429 || head.status.code == 503,
      let delay = RetryAfter.delay(head.headerFields, now: Int64(time(nil)))
    else { return }
    onRetryAfter(url.normalizedOrigin, min(delay, request.retryAfterCeiling))
  }

  private static let redirectStatuses: Set<Int> = [301, 302, 303, 307, 308]

  /// What describes a body, without which it makes no sense.
  private static let bodyFields: [HTTPField.Name] = [
    .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation,
  ]

  /// Whether a 401 asks for what has been held back so far.
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

  /// A piece of the body.
  ///
  /// - Returns: what libcurl's write callback returns: the count, the sign for a pause, or 0, which
  ///   ends the transfer.
  func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    if !sawHead, case .proceed = disposition {
      // libcurl has seen the end of a head where there is none.
      failure = ExchangeError(
        code: .malformedResponse, url: url, detail: "a body without a response head")
      return 0
    }
    switch disposition {
    case .proceed, .pause:
      // While a body is decoded, libcurl keeps all that its buffer still holds in a memory of its own, which
      // may be a thousand times as much.
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

  /// Whether what comes is read and dropped.
  var isDiscarding: Bool {
    guard case .discard = disposition else { return false }
    return !isResending || sawHead || redirect != nil
  }

  /// Fills the buffer with the next bytes of the request's body; what libcurl's read callback
  /// returns.
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
    /// Start again at the URL that the redirect named; ``prepare(configuration:)`` first.
    case follow
    case done(ExchangeCompletion)
  }

  /// What comes after libcurl has reported `code` for this handle.
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
      // A long body of a redirect was cut on purpose; its connection is gone, which is all.
      redirect = nil
      url = target
      failedRoutes = []
      metrics.requests += 1
      return .follow
    }
    if let route = failedRoute(code) {
      failedRoutes.insert(route)
      // Nothing has been sent to the server: the same request goes another way.
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
      // So libcurl calls a line that outgrows its buffer (CURL_MAX_HTTP_HEADER).
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

  /// Adds what the present hop has cost; before its handle is set up anew or given back.
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

  /// Whether the present hop goes to the origin whose credentials the request holds.
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
