internal import CCurl
internal import Glibc
internal import HTTPTransferCore

/// What outlives the easy handles: for each origin a `CURLSH` with its TLS sessions and cookies.
///
/// So cookies reach no other scheme, host or port, and no server can fill the jar of another.
///
/// Belongs to the network thread, as do all handles that use a share: the shares need no lock
/// functions.
final class OriginShares {
  private struct Entry {
    let share: UnsafeMutableRawPointer
    var lastUse: UInt64
  }

  private let keepsCookies: Bool
  /// The lines of the user's cookies by their domain, which is in lower case.
  private var cookies: [Substring: [String]] = [:]
  private var entries: [String: Entry] = [:]
  private var useCount: UInt64 = 0

  /// More origins than a mount or a queue uses at once; an origin that is forgotten starts again
  /// without cookies and sessions.
  private static let originLimit = 256

  /// The most cookies of one origin (RFC 6265 §6.1 has 50 for a domain), and the most bytes of them.
  private static let cookieLimit = 100
  private static let cookieByteLimit = 64 << 10

  /// The most of the user's own cookies that are taken for one domain: libcurl compares each with all
  /// others of its domain, and sends 150 at most.
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

  /// What stands before the domain of a cookie that scripts do not see.
  private static let hiddenMark = "#HttpOnly_"

  deinit { for entry in entries.values { curl_share_cleanup(entry.share) } }

  /// The share of the handles that ask `url`'s origin; nil where memory is out.
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

  /// If the origin of `url` has set too many cookies, forgets all that it has set, and no others.
  ///
  /// - Parameters:
  ///   - url: whose server has set some.
  ///   - easy: a handle that has its share, and is in no transfer.
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

  /// The lines of the user's cookies for a host: those of its own name, and of the names above it.
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

  /// Puts them into the jar of a handle's share: a file that each handle reads (`CURLOPT_COOKIEFILE`)
  /// would undo what servers have set since.
  private func addOwnCookies(for host: String, by easy: UnsafeMutableRawPointer) {
    for line in ownCookies(for: host) {
      _ = httpfs_easy_set_string(easy, CURLOPT_COOKIELIST, line)
    }
  }

  /// Forgets the origin that has not been asked for longest, of those that no transfer goes to.
  private func forgetOldest() {
    for (origin, entry) in entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
      // Refused where a handle has it.
      if curl_share_cleanup(entry.share) == CURLSHE_OK {
        entries[origin] = nil
        return
      }
    }
  }
}
