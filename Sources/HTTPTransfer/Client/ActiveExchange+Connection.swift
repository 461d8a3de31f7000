internal import CCurl
internal import Glibc
internal import HTTPTransferCore

/// The connection of an exchange: allowed addresses and timeouts.
extension ActiveExchange {
  /// Whether the connection is closed within seconds after the path to the server is lost.
  ///
  /// A server that is merely slow is not affected, because its kernel answers.
  ///
  /// TCP alone would wait for as long as the path was lost. Only for ranges, because any other
  /// connection can fetch the rest.
  var noticesDeadPath: Bool { body == nil && request.range != nil }

  /// After this many seconds without a byte the path is probed.
  ///
  /// Probes have the same interval, and after a fixed number of them the connection is closed: 6 s
  /// in all.
  ///
  /// The server's kernel retries after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s. So whenever the path comes
  /// back, a retry of one side is less than 4 s away.
  static let keepAliveIdleSeconds = 3
  static let keepAliveIntervalSeconds = 1
  private static let keepAliveProbeCount: CInt = 3

  /// Opens the socket of a connection; after -1, libcurl tries the host's next address.
  func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = Int(httpfs_address_bytes(address, &bytes))
    if let target = IPAddress(bytes: bytes.prefix(count)), !addressGuard.permits(target) {
      return -1
    }
    let kind = address.pointee
    // A child process must not hold a connection open.
    let descriptor = socket(
      kind.family, kind.socktype | CInt(SOCK_CLOEXEC.rawValue), kind.protocol)
    if descriptor >= 0 {
      openedSockets.append(descriptor)
    } else if errno == EMFILE || errno == ENFILE {
      lacksDescriptors = true
    }
    if descriptor >= 0, noticesDeadPath {
      var probeCount = Self.keepAliveProbeCount
      setsockopt(
        descriptor, CInt(IPPROTO_TCP), TCP_KEEPCNT, &probeCount,
        socklen_t(MemoryLayout<CInt>.size))
    }
    return descriptor
  }

  /// Called before a request is sent over a new or reused connection; false ends the exchange.
  func requestIsReady(address text: String, localPort: UInt16) -> Bool {
    // TLS may bring tickets, and only the server can have sent anything. The same holds if the way
    // to the proxy is encrypted.
    if url.scheme == "http", !way.route.isEncrypted,
      !sockets.isClean(localPort: localPort, opened: openedSockets)
    {
      hasStrayBytes = true
      return false
    }
    let address = AddressGuard.address(text)
    // The name may have had another address when the connection was made.
    if let address, !addressGuard.permits(address) {
      failure = refusedAddress
      return false
    }
    guard maySend() else {
      failure = ExchangeError(
        code: .connectionLost, url: url,
        detail: "no answer has come, and the request may have been carried out")
      return false
    }
    if let limit = request.headTimeout, body == nil { headDeadline = .now + limit }
    unansweredSince = .now
    receiver.requestSent()
    if let address, addressGuard.noteRequest(to: address) {
      onPublicAddress(url.normalizedOrigin)
    }
    return true
  }

  /// Why the redirect to this host's address was refused.
  var refusedAddress: ExchangeError? {
    addressGuard.refused.map { address in
      ExchangeError(
        code: .forbiddenRedirect, url: url,
        detail: "from a public address to \(url.origin), which is the private address \(address)")
    }
  }

  /// Whether the head of the current hop is overdue.
  func isHeadLate(now: ContinuousClock.Instant) -> Bool {
    guard let headDeadline, !isHeld, !sawHead, redirect == nil else { return false }
    return headDeadline <= now
  }

  /// Fails the exchange because the head is overdue.
  func failSlowHead() {
    let limit = request.headTimeout.map { " within \($0)" } ?? ""
    failure = ExchangeError(
      code: .timedOut, url: url, detail: "the head of the response was not complete\(limit)")
  }
}
