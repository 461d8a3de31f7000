internal import CCurl
internal import Glibc
internal import HTTPTransferCore

/// The connection of an exchange: where it may lead, and how soon it is given up.
extension ActiveExchange {
  /// Whether the connection is given up within seconds where the path to the server is gone, which a
  /// server that is merely slow never shows: its kernel answers.
  ///
  /// TCP alone would wait for up to as long as the path was gone. Only for a range, the rest of which
  /// any other connection can bring.
  var noticesDeadPath: Bool { body == nil && request.range != nil }

  /// After so many seconds without a byte the path is probed, then every so many, and given up after
  /// so many probes: 6 s in all.
  ///
  /// The server's kernel tries again by itself after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s: whenever the
  /// path comes back, one of both is less than 4 s away.
  static let keepAliveIdleSeconds = 3
  static let keepAliveIntervalSeconds = 1
  private static let keepAliveProbeCount: CInt = 3

  /// Opens the socket of a connection; libcurl goes on with the host's next address where it is -1.
  func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = Int(httpfs_address_bytes(address, &bytes))
    if let target = IPAddress(bytes: bytes.prefix(count)), !addressGuard.permits(target) {
      return -1
    }
    let kind = address.pointee
    // No program that is started meanwhile is to hold a connection open.
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

  /// A request is about to be sent over a connection, new or not; false ends the exchange.
  func requestIsReady(address text: String, localPort: UInt16) -> Bool {
    // Within TLS there may be tickets, and nobody but the server can have sent anything.
    // Nor where the way to the proxy is within TLS.
    if url.scheme == "http", !way.route.isEncrypted,
      !sockets.isClean(localPort: localPort, opened: openedSockets)
    {
      hasStrayBytes = true
      return false
    }
    let address = AddressGuard.address(text)
    // The name may have been another address's when the connection was made.
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

  /// Why the redirect was not followed to where its name leads.
  var refusedAddress: ExchangeError? {
    addressGuard.refused.map { address in
      ExchangeError(
        code: .forbiddenRedirect, url: url,
        detail: "from a public address to \(url.origin), which is the private address \(address)")
    }
  }

  /// Whether the head of the present hop should be complete by now, and is not.
  func isHeadLate(now: ContinuousClock.Instant) -> Bool {
    guard let headDeadline, !isHeld, !sawHead, redirect == nil else { return false }
    return headDeadline <= now
  }

  /// The head has not come in time.
  func failSlowHead() {
    let limit = request.headTimeout.map { " within \($0)" } ?? ""
    failure = ExchangeError(
      code: .timedOut, url: url, detail: "the head of the response was not complete\(limit)")
  }
}
