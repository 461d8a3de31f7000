internal import CCurl
internal import LinuxSystem

/// A curl multi handle, which outlives the threads that drive it, one at a time.
///
/// `@unchecked Sendable`: other threads only call `wakeUp`, and `curl_multi_wakeup` is documented
/// as safe for that; everything else happens on the network thread.
final class MultiHandle: @unchecked Sendable {
  let pointer: UnsafeMutableRawPointer?
  /// The state of each origin that outlives its easy handles; used by the network thread.
  let shares: OriginShares
  /// The sockets of the connections, which also outlive a thread.
  let sockets = ConnectionSockets()

  init(configuration: TransferClientConfiguration) {
    // Once per process, before any other thread of ours can use libcurl.
    _ = Self.globalInitialization
    pointer = curl_multi_init()
    shares = OriginShares(
      keepsCookies: configuration.keepsCookies, cookies: configuration.cookies)
    let connectionLimit = Self.connectionLimit(configuration)
    set(CURLMOPT_PIPELINING, configuration.usesHTTP2 ? multiplex : 0)
    set(CURLMOPT_MAX_HOST_CONNECTIONS, configuration.maximumConnectionsPerHost)
    set(CURLMOPT_MAX_TOTAL_CONNECTIONS, connectionLimit)
    // Otherwise libcurl closes idle connections beyond four per exchange in progress.
    set(CURLMOPT_MAXCONNECTS, connectionLimit)
  }

  /// As many connections as the configuration allows, but at most a quarter of this process's
  /// descriptors, because files need the others.
  static func connectionLimit(_ configuration: TransferClientConfiguration) -> Int {
    let descriptorCount = max(4, (ProcessCalls.descriptorLimit - reservedDescriptorCount) / 4)
    return configuration.maximumConnections > 0
      ? min(configuration.maximumConnections, descriptorCount) : descriptorCount
  }

  /// How many descriptors a process needs besides connections and files.
  private static let reservedDescriptorCount = 32

  deinit {
    if let pointer { curl_multi_cleanup(pointer) }
  }

  private static let globalInitialization = curl_global_init(Int(globalDefault))

  func wakeUp() {
    if let pointer { curl_multi_wakeup(pointer) }
  }

  private func set(_ option: CURLMoption, _ value: Int) {
    if let pointer { _ = httpfs_multi_set_long(pointer, option, value) }
  }
}

/// `CURL_GLOBAL_DEFAULT` (SSL | WIN32), a macro of macros that Swift cannot import.
private let globalDefault = 3

/// `CURLPIPE_MULTIPLEX`, whose type Swift does not accept as a `long`.
private let multiplex = 2
