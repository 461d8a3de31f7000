internal import CCurl
internal import HTTPTransferCore
internal import HTTPTypes

/// Sets the options of a new handle for one hop of an exchange.
struct HopOptions {
  let configuration: TransferClientConfiguration
  let request: ExchangeRequest
  let target: HopTarget
  /// The proxy of the request, if any.
  let way: ProxySettings.Choice
  /// The state that the client's handles share.
  let share: UnsafeMutableRawPointer?
  /// The number of exchanges in progress, including this one.
  let neighbourCount: Int
  /// Whether a connection that was used before must not be used.
  let needsFreshConnection: Bool
  let connectTimeout: Duration
  let stallTimeout: Duration?

  func apply(to easy: EasyHandle) {
    easy.set(CURLOPT_URL, target.url.withoutUserInfo)
    easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
    easy.set(CURLOPT_NOSIGNAL, 1)
    // The head of a proxy's response to CONNECT is not the response.
    easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    easy.set(CURLOPT_FOLLOWLOCATION, 0)
    // Not for uploads: if a server responds before the end, libcurl 7.88 loses the response because
    // of the stream's reset after it.
    easy.set(
      CURLOPT_HTTP_VERSION,
      configuration.usesHTTP2 && target.body == nil
        ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
    easy.set(CURLOPT_PIPEWAIT, 0)
    // A cancelled exchange must not block the network thread until the resolver's thread ends.
    easy.set(CURLOPT_QUICK_EXIT, 1)
    easy.set(CURLOPT_TCP_KEEPALIVE, 1)
    if HopConnection.noticesDeadPath(request, target) {
      easy.set(CURLOPT_TCP_KEEPIDLE, HopConnection.keepAliveIdleSeconds)
      easy.set(CURLOPT_TCP_KEEPINTVL, HopConnection.keepAliveIntervalSeconds)
    }
    // Read larger pieces from the socket, less often; libcurl still passes on at most 16 KiB at a
    // time. Many concurrent exchanges share the bandwidth and the memory, so each reads less.
    easy.set(CURLOPT_BUFFERSIZE, bufferSize)
    easy.set(
      CURLOPT_CONNECTTIMEOUT_MS, EasyHandle.number(connectTimeout / .milliseconds(1)))
    setTrust(of: easy)
    setRoute(of: easy)
    easy.setStallTimeout(stallTimeout)
    if let share { easy.set(CURLOPT_SHARE, pointer: share) }
    // Enables the cookie engine without reading a file.
    if configuration.keepsCookies { easy.set(CURLOPT_COOKIEFILE, "") }
    // An idle connection may be dead, which is only noticed after sending the request.
    if needsFreshConnection || !target.method.isRepeatable { easy.set(CURLOPT_FRESH_CONNECT, 1) }
    if target.method == .head { easy.set(CURLOPT_NOBODY, 1) }
    if let body = target.body {
      easy.set(CURLOPT_UPLOAD, 1)
      easy.set(CURLOPT_INFILESIZE_LARGE, offset: body.byteCount ?? -1)
      easy.set(CURLOPT_UPLOAD_BUFFERSIZE, 256 * 1024)
    }
    if target.method != .get && target.method != .head {
      easy.set(CURLOPT_CUSTOMREQUEST, target.method.rawValue)
    }
    if let userInfo = target.userInfo {
      let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      easy.set(CURLOPT_HTTPAUTH, basicAuthentication)
      easy.set(CURLOPT_USERNAME, URLResolver.decoded(parts[0]))
      easy.set(CURLOPT_PASSWORD, parts.count > 1 ? URLResolver.decoded(parts[1]) : "")
    }
    setHeaders(of: easy)
  }

  /// The size of libcurl's receive buffer in bytes: a short range needs no more than its length.
  private var bufferSize: Int {
    let share = max(64 << 10, (1 << 20) / max(2, neighbourCount))
    return request.range.map { min(share, max(16 << 10, $0.count)) } ?? share
  }

  /// The fields that describe a body, without which they make no sense.
  private static let bodyFields: [HTTPField.Name] = [
    .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation,
  ]

  private func setHeaders(of easy: EasyHandle) {
    var fields = request.fields
    if target.isAtConfidentialOrigin { fields.append(contentsOf: request.confidentialFields) }
    if target.method != request.method {
      // These fields described a body that a redirect has removed.
      for name in Self.bodyFields { fields[name] = nil }
    }
    // The body determines its length. Another length would cut it, and leave the rest on the
    // connection.
    fields[.contentLength] = nil
    fields[.transferEncoding] = nil
    if fields[.userAgent] == nil { fields[.userAgent] = configuration.userAgent }
    // A byte range of a coded representation would be useless. libcurl decodes nothing, because it
    // would keep in memory what it has decoded when an exchange pauses.
    if fields[.acceptEncoding] == nil { fields[.acceptEncoding] = "identity" }
    if let range = request.range { fields[.range] = range.rangeField }
    easy.setHeaderLines(
      fields.map { field in
        // Copy bytes: an entity tag is sent exactly as received.
        let name = Array(field.name.rawName.utf8)
        return field.withUnsafeBytesOfValue { value in
          // An empty value needs a semicolon; otherwise libcurl drops the field.
          value.isEmpty ? name + ";".utf8 : name + ": ".utf8 + value
        }
      })
  }

  /// Sets the authorities for the server's certificate, and this client's own certificate.
  private func setTrust(of easy: EasyHandle) {
    if let file = configuration.certificateAuthorityFile {
      easy.set(CURLOPT_CAINFO, file)
      easy.set(CURLOPT_PROXY_CAINFO, file)
    }
    if let directory = configuration.certificateAuthorityDirectory {
      easy.set(CURLOPT_CAPATH, directory)
      easy.set(CURLOPT_PROXY_CAPATH, directory)
    }
    // Debian's libcurl has defaults for both a file and a directory, and would still trust the
    // other one.
    let hasFile = configuration.certificateAuthorityFile != nil
    let hasDirectory = configuration.certificateAuthorityDirectory != nil
    if hasFile, !hasDirectory {
      easy.set(CURLOPT_CAPATH, pointer: nil)
      easy.set(CURLOPT_PROXY_CAPATH, pointer: nil)
    }
    if hasDirectory, !hasFile {
      easy.set(CURLOPT_CAINFO, pointer: nil)
      easy.set(CURLOPT_PROXY_CAINFO, pointer: nil)
    }
    if !configuration.verifiesServers {
      // A proxy is still verified, because the user has named it.
      easy.set(CURLOPT_SSL_VERIFYPEER, 0)
      easy.set(CURLOPT_SSL_VERIFYHOST, 0)
    }
    if target.isAtConfidentialOrigin, let certificate = configuration.clientCertificate {
      easy.set(CURLOPT_SSLCERT, certificate.certificateFile)
      easy.set(CURLOPT_SSLKEY, certificate.keyFile)
    }
  }

  /// Sets the proxy, and the address family and interface of the connection.
  private func setRoute(of easy: EasyHandle) {
    switch way.route {
    case .direct: easy.set(CURLOPT_PROXY, "")
    case .proxy(let url):
      easy.set(CURLOPT_PROXY, url)
      // The exceptions were checked already; libcurl must not apply the environment's again.
      easy.set(CURLOPT_NOPROXY, "")
    }
    switch configuration.addressFamily {
    case .any: break
    case .ipv4: easy.set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
    case .ipv6: easy.set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
    }
    if let interface = configuration.interface { easy.set(CURLOPT_INTERFACE, interface) }
  }
}
