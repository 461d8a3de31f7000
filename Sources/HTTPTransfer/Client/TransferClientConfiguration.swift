public import HTTPTransferCore

/// How a ``TransferClient`` connects to servers, and what it tells them.
public struct TransferClientConfiguration: Sendable {
  /// The `User-Agent` of requests that do not set it.
  public var userAgent: String
  /// A PEM file of certificate authorities to trust instead of the system's.
  public var certificateAuthorityFile: String?
  /// A directory of such authorities, named by their hashes (`openssl rehash`).
  public var certificateAuthorityDirectory: String?
  /// Whether https servers must prove their identity; otherwise anybody on the network can read
  /// and change the data.
  public var verifiesServers = true
  /// The client certificate for https servers that request one.
  ///
  /// It is only shown to the origin of a request, never to an origin that a redirect names.
  public var clientCertificate: ClientCertificate?
  /// The address family of connections.
  public var addressFamily = AddressFamily.any
  /// The name or address of the network interface for connections; nil for any.
  public var interface: String?
  /// The proxies to use; nil for those of the environment, interpreted as libcurl does
  /// (`http_proxy`, `https_proxy`, `all_proxy`).
  public var proxies: ProxyList?
  /// The hosts to reach without a proxy, separated by commas: names with all their subdomains,
  /// addresses, blocks, or `*`; nil for those of the environment (`no_proxy`).
  public var proxyExceptions: String?
  /// Initial cookies, as lines of the Netscape cookie file format.
  ///
  /// libcurl sends each to its own hosts and paths.
  public var cookies: [String] = []
  /// The maximum number of open connections to one host; further exchanges wait.
  public var maximumConnectionsPerHost: Int
  /// The maximum number of open connections in total.
  public var maximumConnections: Int
  /// Whether to offer HTTP/2 to https servers, for requests without a body.
  ///
  /// Off by default, because parallel ranges would share one TCP connection and its congestion
  /// window.
  public var usesHTTP2 = false
  /// The initial limit of body bytes per second that all exchanges together receive and send, see
  /// ``TransferClient/setRateLimit(_:)``; nil for no limit.
  public var rateLimit: Int64?
  /// Whether to keep cookies, in separate jars of this client, and to send them to the origin
  /// that has set them.
  public var keepsCookies = true

  public init(
    userAgent: String = "httpfs/0.2", certificateAuthorityFile: String? = nil,
    maximumConnectionsPerHost: Int = 64, maximumConnections: Int = 256
  ) {
    self.userAgent = userAgent
    self.certificateAuthorityFile = certificateAuthorityFile
    self.maximumConnectionsPerHost = maximumConnectionsPerHost
    self.maximumConnections = maximumConnections
  }

  /// A certificate with its private key, both PEM files, unencrypted.
  public struct ClientCertificate: Sendable, Hashable {
    public var certificateFile: String
    /// May be the same file.
    public var keyFile: String

    public init(certificateFile: String, keyFile: String) {
      self.certificateFile = certificateFile
      self.keyFile = keyFile
    }
  }

  public enum AddressFamily: Sendable, Hashable {
    case any, ipv4, ipv6
  }
}
