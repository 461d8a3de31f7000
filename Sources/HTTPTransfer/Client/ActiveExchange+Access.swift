internal import CCurl
internal import HTTPTransferCore

/// Sets the trusted authorities, the client's certificate and the route of an exchange.
extension ActiveExchange {
  /// Sets the authorities for the server's certificate, and this client's own certificate.
  func setTrust(_ configuration: HTTPClientConfiguration) {
    if let file = configuration.certificateAuthorityFile {
      set(CURLOPT_CAINFO, file)
      set(CURLOPT_PROXY_CAINFO, file)
    }
    if let directory = configuration.certificateAuthorityDirectory {
      set(CURLOPT_CAPATH, directory)
      set(CURLOPT_PROXY_CAPATH, directory)
    }
    // Debian's libcurl has defaults for both a file and a directory, and would still trust the
    // other one.
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
      // A proxy is still verified, because the user has named it.
      set(CURLOPT_SSL_VERIFYPEER, 0)
      set(CURLOPT_SSL_VERIFYHOST, 0)
    }
    if isAtConfidentialOrigin, let certificate = configuration.clientCertificate {
      set(CURLOPT_SSLCERT, certificate.certificateFile)
      set(CURLOPT_SSLKEY, certificate.keyFile)
    }
  }

  /// Sets the proxy, and the address family and interface of the connection.
  func setRoute(_ configuration: HTTPClientConfiguration, _ way: ProxySettings.Choice) {
    switch way.route {
    case .direct: set(CURLOPT_PROXY, "")
    case .proxy(let url):
      set(CURLOPT_PROXY, url)
      // The exceptions were checked already; libcurl must not apply the environment's again.
      set(CURLOPT_NOPROXY, "")
    }
    switch configuration.addressFamily {
    case .any: break
    case .ipv4: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
    case .ipv6: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
    }
    if let interface = configuration.interface { set(CURLOPT_INTERFACE, interface) }
  }

  /// The route of the current hop if the failure is its own: the proxy is missing or is not a
  /// proxy.
  ///
  /// A response of the proxy, even a refusal, is a response and not a failure of the route.
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
      // The proxy accepts connections but does not answer a request for a tunnel.
      var status = 0
      _ = httpfs_easy_get_long(easy, CURLINFO_HTTP_CONNECTCODE, &status)
      let isSilent = microseconds(of: CURLINFO_PRETRANSFER_TIME_T) == 0 && status == 0
      return !route.isDirect && isSilent ? route : nil
    default: return nil
    }
  }

  /// A time of the current hop in microseconds; 0 if the hop has not reached that point.
  private func microseconds(of info: CURLINFO) -> curl_off_t {
    var microseconds: curl_off_t = 0
    _ = httpfs_easy_get_offset(easy, info, &microseconds)
    return microseconds
  }

  /// How long a proxy may stay silent before we suspect that it hangs; some servers are slow.
  private static let proxyPatience = Duration.seconds(1)

  /// The http proxy that has the request and has been silent since; nil for a tunnel, because the
  /// server behind it may be the silent one.
  func silentProxy(
    now: ContinuousClock.Instant
  ) -> (route: ProxyList.Route, since: ContinuousClock.Instant)? {
    guard let since = unansweredSince, now - since >= Self.proxyPatience, url.scheme == "http",
      case .proxy(let proxy) = way.route, proxy.hasPrefix("http")
    else { return nil }
    return (way.route, since)
  }

  /// Whether a SOCKS proxy reports that the server cannot be reached.
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
