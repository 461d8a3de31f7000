internal import CCurl
internal import HTTPTransferCore

/// Whom an exchange trusts, what it proves itself with, and which way it takes.
extension ActiveExchange {
  /// Sets what the server's certificate is checked against, and this client's own.
  func setTrust(_ configuration: HTTPClient.Configuration) {
    if let file = configuration.certificateAuthorityFile {
      set(CURLOPT_CAINFO, file)
      set(CURLOPT_PROXY_CAINFO, file)
    }
    if let directory = configuration.certificateAuthorityDirectory {
      set(CURLOPT_CAPATH, directory)
      set(CURLOPT_PROXY_CAPATH, directory)
    }
    // Debian's libcurl has a default for both, and would go on trusting what the other one holds.
    let hasFile = configuration.certificateAuthorityFile != nil
    let hasDirectory = configuration.certificateAuthorityDirectory != nil
    if hasFile, !hasDirectory {
      set(CURLOPT_CAPATH, pointer: nil)
      set(CURLOPT_PROXY_CAPATH, pointer: nil)
    }
    if hasDirectory, !hasFile {
      set(CURLOPT_CAINFO, pointer: nil)
      set(CURLOPT_PROXY_CAINFO, pointer: nil)
    }
    if !configuration.verifiesServers {
      // A proxy, which is named by whoever runs this, is still verified.
      set(CURLOPT_SSL_VERIFYPEER, 0)
      set(CURLOPT_SSL_VERIFYHOST, 0)
    }
    if isAtConfidentialOrigin, let certificate = configuration.clientCertificate {
      set(CURLOPT_SSLCERT, certificate.certificateFile)
      set(CURLOPT_SSLKEY, certificate.keyFile)
    }
  }

  /// Sets the proxy, and which addresses the connection may have at both of its ends.
  func setRoute(_ configuration: HTTPClient.Configuration, _ way: ProxySettings.Choice) {
    switch way.route {
    case .direct: set(CURLOPT_PROXY, "")
    case .proxy(let url):
      set(CURLOPT_PROXY, url)
      // The exceptions have been looked at; the environment's are not to be, again.
      set(CURLOPT_NOPROXY, "")
    }
    switch configuration.addressFamily {
    case .any: break
    case .ipv4: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
    case .ipv6: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
    }
    if let interface = configuration.interface { set(CURLOPT_INTERFACE, interface) }
  }

  /// The route of the present hop, where the failure is its own: a proxy that is not there, or is none.
  ///
  /// Its answers, refusals among them, are answers.
  func failedRoute(_ code: CURLcode) -> ProxyList.Route? {
    let route = way.route
    guard code != CURLE_OK, !sawHead, !lacksDescriptors, addressGuard.refused == nil else {
      return nil
    }
    switch code {
    case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY: return route
    case CURLE_COULDNT_RESOLVE_HOST: return route.isDirect ? route : nil
    case CURLE_PROXY: return isServersFailure ? nil : route
    case CURLE_OPERATION_TIMEDOUT:
      if microseconds(of: CURLINFO_CONNECT_TIME_T) == 0 { return route }
      // It takes connections, and answers no request for a tunnel.
      var status = 0
      _ = httpfs_easy_get_long(easy, CURLINFO_HTTP_CONNECTCODE, &status)
      let isSilent = microseconds(of: CURLINFO_PRETRANSFER_TIME_T) == 0 && status == 0
      return !route.isDirect && isSilent ? route : nil
    default: return nil
    }
  }

  /// A time of the present hop in microseconds; 0 where it has not come so far.
  private func microseconds(of info: CURLINFO) -> curl_off_t {
    var microseconds: curl_off_t = 0
    _ = httpfs_easy_get_offset(easy, info, &microseconds)
    return microseconds
  }

  /// For how long a proxy says nothing before it may be one that hangs: not every server is quick.
  private static let proxyPatience = Duration.seconds(1)

  /// The http proxy that has the request, and has said nothing since; nil where it is a tunnel, behind
  /// which the server may be the silent one.
  func silentProxy(
    now: ContinuousClock.Instant
  ) -> (route: ProxyList.Route, since: ContinuousClock.Instant)? {
    guard let since = unansweredSince, now - since >= Self.proxyPatience, url.scheme == "http",
      case .proxy(let proxy) = way.route, proxy.hasPrefix("http")
    else { return nil }
    return (way.route, since)
  }

  /// Whether a SOCKS proxy says that it is the server that cannot be reached.
  private var isServersFailure: Bool {
    var number = 0
    _ = httpfs_easy_get_long(easy, CURLINFO_PROXY_ERROR, &number)
    let ofServers = [
      CURLPX_REPLY_CONNECTION_REFUSED, CURLPX_REPLY_HOST_UNREACHABLE,
      CURLPX_REPLY_NETWORK_UNREACHABLE, CURLPX_REPLY_TTL_EXPIRED, CURLPX_RESOLVE_HOST,
    ]
    return ofServers.contains { Int($0.rawValue) == number }
  }
}
