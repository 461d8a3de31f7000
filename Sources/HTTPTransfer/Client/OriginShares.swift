internal import CCurl
internal import Glibc
internal import HTTPTransferCore

/// State that outlives the easy handles: for each origin a `CURLSH` with its TLS sessions and
/// cookies.
///
/// So cookies never go to another scheme, host or port, and no server can fill the jar of another.
///
/// The network thread owns it and all handles that use a share, so the shares need no lock
/// functions.
final class OriginShares {
  private struct Entry {
    let share: UnsafeMutableRawPointer
    var lastUse: UInt64
  }

  private let keepsCookies: Bool
  /// The lines of the user's cookies by domain, in lower case.
  private var cookies: [Substring: [String]] = [:]
  private var entries: [String: Entry] = [:]
  private var useCount: UInt64 = 0

  /// More origins than a mount or a queue uses at once.
  ///
  /// An origin that is dropped starts again without cookies and sessions.
  private static let originLimit = 256

  /// The maximum number of cookies of one origin (RFC 6265 §6.1 requires 50 per domain), and of
  /// their bytes.
  private static let cookieLimit = 100
  private static let cookieByteLimit = 64 << 10

  /// The maximum number of the user's own cookies for one domain: libcurl compares each with all
  /// others of its domain, and sends at most 150.
  private static let ownCookieLimit = 1000

  init(keepsCookies: Bool, cookies: [String]) {
    self.keepsCookies = keepsCookies
    for line in cookies {
      var domain = line.prefix { $0 != "\t" }
      if domain.hasPrefix(Self.hiddenMark) { domain = domain.dropFirst(Self.hiddenMark.count) }
      if domain.first == "." { domain = domain.dropFirst() }
      let key = Substring(domain.lowercased())
      if self.cookies[key, default: []].count < Self.ownCookieLimit {
        self.cookies[key, default: []].append(line)
      }
    }
  }

  /// The prefix of a domain whose cookie is hidden from scripts.
  private static let hiddenMark = "#HttpOnly_"

  deinit { for entry in entries.values { curl_share_cleanup(entry.share) } }

  /// The share for handles of `url`'s origin; nil if memory is short.
  func share(for url: RemoteURL) -> UnsafeMutableRawPointer? {
    let origin = url.normalizedOrigin
    useCount += 1
    if let entry = entries[origin] {
      entries[origin]?.lastUse = useCount
      return entry.share
    }
    if entries.count >= Self.originLimit { forgetOldest() }
    guard let share = curl_share_init() else { return nil }
    _ = httpfs_share_sessions(share)
    if keepsCookies {
      _ = httpfs_share_cookies(share)
      if let easy = curl_easy_init() {
        _ = httpfs_easy_set_pointer(easy, CURLOPT_SHARE, share)
        addOwnCookies(for: url.host, by: easy)
        curl_easy_cleanup(easy)
      }
    }
    entries[origin] = Entry(share: share, lastUse: useCount)
    return share
  }

  /// If the origin of `url` has set too many cookies, drops all of them, and no others.
  ///
  /// - Parameters:
  ///   - url: a URL of the server.
  ///   - easy: a handle that uses its share and is not in use.
  func limitCookies(of url: RemoteURL, by easy: UnsafeMutableRawPointer) {
    var pointer: UnsafeMutableRawPointer?
    guard httpfs_easy_get_pointer(easy, CURLINFO_COOKIELIST, &pointer) == CURLE_OK, let pointer
    else { return }
    let list = pointer.assumingMemoryBound(to: curl_slist.self)
    defer { curl_slist_free_all(list) }
    var (count, byteCount) = (0, 0)
    var item: UnsafeMutablePointer<curl_slist>? = list
    while let line = item {
      count += 1
      byteCount += line.pointee.data.map { strlen($0) } ?? 0
      item = line.pointee.next
    }
    let own = ownCookies(for: url.host)
    guard
      count > Self.cookieLimit + own.count
        || byteCount > Self.cookieByteLimit + own.reduce(0, { $0 + $1.utf8.count })
    else { return }
    _ = httpfs_easy_set_string(easy, CURLOPT_COOKIELIST, "ALL")
    addOwnCookies(for: url.host, by: easy)
  }

  /// The lines of the user's cookies for a host: those of its own name, and of its parent domains.
  private func ownCookies(for host: String) -> [String] {
    guard !cookies.isEmpty else { return [] }
    var lines: [String] = []
    var name = host[...]
    while true {
      lines += cookies[name] ?? []
      guard let dot = name.firstIndex(of: ".") else { return lines }
      name = name[name.index(after: dot)...]
    }
  }

  /// Adds them to the jar of a handle's share.
  ///
  /// A file that each handle reads (`CURLOPT_COOKIEFILE`) would undo later changes by servers.
  private func addOwnCookies(for host: String, by easy: UnsafeMutableRawPointer) {
    for line in ownCookies(for: host) {
      _ = httpfs_easy_set_string(easy, CURLOPT_COOKIELIST, line)
    }
  }

  /// Drops the least recently used origin without exchanges.
  private func forgetOldest() {
    for (origin, entry) in entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
      // Fails if a handle uses the share.
      if curl_share_cleanup(entry.share) == CURLSHE_OK {
        entries[origin] = nil
        return
      }
    }
  }
}
