internal import CCurl
internal import Glibc
internal import HTTPTransferCore

/// The connection of one hop of an exchange: its sockets, the addresses that it may have, and
/// whether the request may be sent over it.
struct HopConnection {
  private var addressGuard: AddressGuard
  /// The sockets of the client's connections, by their local ports.
  private let sockets: ConnectionSockets
  /// The sockets of this hop's connection attempts.
  private var openedSockets: [CInt] = []
  /// Whether no socket could be created.
  private(set) var lacksDescriptors = false
  /// How often libcurl may still send the request of the hop, if it must not be repeated.
  private var remainingSends = 1

  init(addressGuard: AddressGuard, sockets: ConnectionSockets) {
    self.addressGuard = addressGuard
    self.sockets = sockets
  }

  /// Begins a hop.
  mutating func begin(_ target: HopTarget, isProxied: Bool) {
    addressGuard.begin(hop: target.redirectCount, isProxied: isProxied, host: target.url.host)
    _ = addressGuard.permitsHost()
    openedSockets = []
    lacksDescriptors = false
    remainingSends = 1
  }

  /// Whether the connection is closed within seconds after the path to the server is lost.
  ///
  /// A server that is merely slow is not affected, because its kernel answers.
  ///
  /// TCP alone would wait for as long as the path was lost. Only for ranges, because any other
  /// connection can fetch the rest.
  static func noticesDeadPath(_ request: ExchangeRequest, _ target: HopTarget) -> Bool {
    target.body == nil && request.range != nil
  }

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

  /// Opens a socket; after -1, libcurl tries the host's next address.
  mutating func openSocket(
    _ address: UnsafeMutablePointer<curl_sockaddr>, noticesDeadPath: Bool
  ) -> curl_socket_t {
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

  /// Whether a connection was opened for the hop; otherwise an idle one is used, which may be dead.
  var isNew: Bool { !openedSockets.isEmpty }

  /// Whether the connection has no unsolicited bytes.
  func isClean(localPort: UInt16) -> Bool {
    sockets.isClean(localPort: localPort, opened: openedSockets)
  }

  /// Whether the connection to `address` may be used.
  ///
  /// The name may have had another address when the connection was made.
  mutating func permits(_ address: IPAddress) -> Bool { addressGuard.permits(address) }

  /// Records that the request is about to go to `address`; returns whether that is the server's
  /// public address.
  mutating func recordRequest(to address: IPAddress) -> Bool {
    addressGuard.recordRequest(to: address)
  }

  /// Why the redirect to the address of `url`'s host was refused; nil if it was not.
  func refusedAddress(of url: RemoteURL) -> ExchangeError? {
    addressGuard.refused.map { address in
      ExchangeError(
        code: .forbiddenRedirect, url: url,
        detail: "from a public address to \(url.origin), which is the private address \(address)")
    }
  }

  /// Whether libcurl may send the request of the hop; called before each attempt.
  ///
  /// libcurl repeats a request if a reused connection brings no response. A request that must not
  /// be repeated is sent once, and once more after a 417 has refused it without processing it.
  mutating func maySend(isRepeatable: Bool) -> Bool {
    guard isRepeatable || remainingSends > 0 else { return false }
    remainingSends -= 1
    return true
  }

  /// Permits another send, because the server refused the request without processing it.
  mutating func recordUnprocessedRequest() { remainingSends += 1 }
}
