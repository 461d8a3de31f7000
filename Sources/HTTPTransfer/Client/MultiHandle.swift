internal import CCurl
internal import ExtentRecord

/// A curl multi handle, which outlives the threads that drive it, one at a time.
///
/// `@unchecked Sendable`: only `wakeUp` is called from other threads, and `curl_multi_wakeup` is
/// documented as safe for that; everything else happens on the network thread.
final class MultiHandle: @unchecked Sendable {
  let pointer: UnsafeMutableRawPointer?
  /// What outlives an easy handle (a `CURLSH`): TLS sessions, and the client's cookie jar.
  ///
  /// Without lock functions, because every handle that shares it belongs to one thread at a time.
  let share: UnsafeMutableRawPointer?

  init(configuration: HTTPClient.Configuration) {
    // Once per process, before any other thread of ours can use libcurl.
    _ = Self.globalInitialization
    pointer = curl_multi_init()
    share = curl_share_init()
    if let share {
      _ = httpfs_share_sessions(share)
      if configuration.keepsCookies {
        _ = httpfs_share_cookies(share)
        Self.fillJar(of: share, with: configuration.cookies)
      }
    }
    let connectionLimit = Self.connectionLimit(configuration)
    set(CURLMOPT_PIPELINING, configuration.usesHTTP2 ? multiplex : 0)
    set(CURLMOPT_MAX_HOST_CONNECTIONS, configuration.maximumConnectionsPerHost)
    set(CURLMOPT_MAX_TOTAL_CONNECTIONS, connectionLimit)
    // Without this, libcurl closes idle connections beyond four for each transfer in progress.
    set(CURLMOPT_MAXCONNECTS, connectionLimit)
  }

  /// As many connections as the configuration allows, and a quarter of this process's descriptors: the
  /// others are for files.
  private static func connectionLimit(_ configuration: HTTPClient.Configuration) -> Int {
    let descriptorCount = max(4, (SystemCalls.descriptorLimit - reservedDescriptorCount) / 4)
    return configuration.maximumConnections > 0
      ? min(configuration.maximumConnections, descriptorCount) : descriptorCount
  }

  /// What a process has open beside connections and files.
  private static let reservedDescriptorCount = 32

  deinit {
    if let pointer { curl_multi_cleanup(pointer) }
    if let share { curl_share_cleanup(share) }
  }

  /// Puts cookies into the jar of a share, once: a file that each handle reads (`CURLOPT_COOKIEFILE`)
  /// would undo what servers have set since.
  private static func fillJar(of share: UnsafeMutableRawPointer, with lines: [String]) {
    guard !lines.isEmpty, let easy = curl_easy_init() else { return }
    defer { curl_easy_cleanup(easy) }
    _ = httpfs_easy_set_pointer(easy, CURLOPT_SHARE, share)
    for line in lines { _ = httpfs_easy_set_string(easy, CURLOPT_COOKIELIST, line) }
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

/// `CURLPIPE_MULTIPLEX`, whose type Swift does not take for a `long`.
private let multiplex = 2
