internal import Glibc
package import HTTPTransferCore

/// The proxy settings of the environment, read as libcurl reads them (`CURLOPT_PROXY`,
/// `CURLOPT_NOPROXY`).
///
/// libcurl itself never reads them, because version 7.88 does not report whether a connection uses
/// a proxy, and its message about an invalid proxy contains the password.
package struct ProxyEnvironment: Sendable {
  private let variables: [String: String]

  /// The variables of this process.
  static var current: ProxyEnvironment {
    var variables: [String: String] = [:]
    for name in names {
      if let value = getenv(name) { variables[name] = String(cString: value) }
    }
    return ProxyEnvironment(variables)
  }

  private static let names = [
    "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
  ]

  package init(_ variables: [String: String]) {
    // An empty variable counts as unset.
    self.variables = variables.filter { !$0.value.isEmpty }
  }

  /// The route of a request to `url`.
  ///
  /// - Throws: if a variable does not name a proxy; the error does not show its value.
  package func route(to url: RemoteURL) throws(ProxyList.ParseError) -> ProxyList.Route {
    guard let name = variable(for: url), let value = variables[name], !isException(url) else {
      return .direct
    }
    return try ProxyList.Route(value[...], named: "the environment's \(name)")
  }

  /// The variable that names the proxy for `url`.
  private func variable(for url: RemoteURL) -> String? {
    // `HTTP_PROXY` is ignored: for a CGI program it is a field of the request.
    let names =
      url.scheme == "https" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
    return (names + ["all_proxy", "ALL_PROXY"]).first { variables[$0] != nil }
  }

  /// Whether the host of `url` is reached without a proxy.
  package func isException(_ url: RemoteURL) -> Bool {
    guard let exceptions = variables["no_proxy"] ?? variables["NO_PROXY"] else { return false }
    return Self.matches(url.host, exceptions)
  }

  /// A copy with other exceptions: the hosts of `list`, separated by commas or spaces.
  package func replacingExceptions(_ list: String) -> ProxyEnvironment {
    var changed = variables
    changed["NO_PROXY"] = nil
    changed["no_proxy"] = list
    return ProxyEnvironment(changed)
  }

  /// Whether a list, separated by commas or spaces, contains a host.
  private static func matches(_ host: String, _ list: String) -> Bool {
    if list == "*" { return true }
    let tokens = list.split { $0 == "," || $0 == " " || $0 == "\t" }
    if let address = AddressGuard.address(host) {
      return tokens.contains { matches(address, $0) }
    }
    let name = withoutDot(host[...])
    return tokens.contains { token in
      let suffix = withoutDot(token.first == "." ? token.dropFirst() : token).lowercased()
      return !suffix.isEmpty && (name == suffix || name.hasSuffix("." + suffix))
    }
  }

  private static func withoutDot(_ text: Substring) -> Substring {
    text.last == "." ? text.dropLast() : text
  }

  /// Whether a token names an address or its block.
  private static func matches(_ address: IPAddress, _ token: Substring) -> Bool {
    let parts = token.split(separator: "/", maxSplits: 1)
    guard let first = parts.first, let block = AddressGuard.address(String(first)) else {
      return false
    }
    guard parts.count == 2 else { return address == block }
    return Int(parts[1]).map { address.hasPrefix(block.bytes, length: $0) } ?? false
  }
}
