internal import Glibc
package import HTTPTransferCore

/// What the environment says of proxies, read as libcurl does (`CURLOPT_PROXY`, `CURLOPT_NOPROXY`).
///
/// libcurl itself never reads it: version 7.88 does not tell whether a connection goes through a proxy,
/// and quotes one that it cannot use with its password.
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
    // An empty one is none.
    self.variables = variables.filter { !$0.value.isEmpty }
  }

  /// The way of a request to `url`.
  ///
  /// - Throws: where a variable does not name a proxy; the error does not show it.
  package func route(to url: RemoteURL) throws(ProxyList.ParseError) -> ProxyList.Route {
    guard let name = variable(for: url), let value = variables[name], !isException(url) else {
      return .direct
    }
    return try ProxyList.Route(value[...], named: "the environment's \(name)")
  }

  /// The variable that names the proxy for `url`.
  private func variable(for url: RemoteURL) -> String? {
    // `HTTP_PROXY` is not looked at: for a CGI program it is a field of the request.
    let names =
      url.scheme == "https" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
    return (names + ["all_proxy", "ALL_PROXY"]).first { variables[$0] != nil }
  }

  /// Whether `url` is of a host that is reached without any proxy.
  package func isException(_ url: RemoteURL) -> Bool {
    guard let exceptions = variables["no_proxy"] ?? variables["NO_PROXY"] else { return false }
    return Self.matches(url.host, exceptions)
  }

  /// The same with other exceptions: the hosts of `list`, separated by commas or spaces.
  package func replacingExceptions(_ list: String) -> ProxyEnvironment {
    var changed = variables
    changed["NO_PROXY"] = nil
    changed["no_proxy"] = list
    return ProxyEnvironment(changed)
  }

  /// Whether a host is one of those that a list separated by commas or spaces names.
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

  /// Whether an address is the one that a token names, or of its block.
  private static func matches(_ address: IPAddress, _ token: Substring) -> Bool {
    let parts = token.split(separator: "/", maxSplits: 1)
    guard let first = parts.first, let block = AddressGuard.address(String(first)) else {
      return false
    }
    guard parts.count == 2 else { return address == block }
    return Int(parts[1]).map { address.hasPrefix(block.bytes, length: $0) } ?? false
  }
}
