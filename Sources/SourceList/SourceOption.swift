/// The options of aria2's input file, grouped by how httpfs handles them.
enum SourceOption {
  case out
  case directory
  case header
  case userAgent
  case referer
  case checksum
  case length
  case pieces
  case rateLimit
  /// Who has named the file of a session.
  case namer
  /// aria2 knows it, but httpfs does not use it.
  case ignored
  case unknown

  init(name: String) {
    switch name {
    case "out": self = .out
    case "dir": self = .directory
    case "header": self = .header
    case "user-agent": self = .userAgent
    case "referer": self = .referer
    case "checksum": self = .checksum
    case "length": self = .length
    case "pieces": self = .pieces
    case "max-download-limit": self = .rateLimit
    case "named-by": self = .namer
    default: self = Self.ignoredNames.contains(name) ? .ignored : .unknown
    }
  }

  /// Whether a text can be the name of an option, so that a warning may show it.
  static func isPlausibleName(_ name: some StringProtocol) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(asciiLowercased($0))
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
      }
  }

  /// "These options have exactly same meaning of the ones in the command-line options, but it just
  /// applies to the URIs it belongs to": aria2c(1), Input File, without those handled above.
  private static let ignoredNames: Set<String> = [
    "all-proxy", "all-proxy-passwd", "all-proxy-user", "allow-overwrite",
    "allow-piece-length-change", "always-resume", "async-dns", "auto-file-renaming",
    "bt-enable-hook-after-hash-check", "bt-enable-lpd", "bt-exclude-tracker",
    "bt-external-ip", "bt-force-encryption", "bt-hash-check-seed", "bt-load-saved-metadata",
    "bt-max-peers", "bt-metadata-only", "bt-min-crypto-level", "bt-prioritize-piece",
    "bt-remove-unselected-file", "bt-request-peer-speed-limit", "bt-require-crypto",
    "bt-save-metadata", "bt-seed-unverified", "bt-stop-timeout", "bt-tracker",
    "bt-tracker-connect-timeout", "bt-tracker-interval", "bt-tracker-timeout",
    "check-integrity", "conditional-get", "connect-timeout", "content-disposition-default-utf8",
    "continue", "dry-run", "enable-http-keep-alive", "enable-http-pipelining", "enable-mmap",
    "enable-peer-exchange", "file-allocation", "follow-metalink", "follow-torrent",
    "force-save", "ftp-passwd", "ftp-proxy", "ftp-proxy-passwd", "ftp-proxy-user",
    "ftp-reuse-connection", "ftp-type", "ftp-user", "gid", "hash-check-only",
    "http-accept-gzip", "http-auth-challenge", "http-no-cache", "http-passwd", "http-proxy",
    "http-proxy-passwd", "http-proxy-user", "http-user", "https-proxy", "https-proxy-passwd",
    "https-proxy-user", "index-out", "lowest-speed-limit", "max-connection-per-server",
    "max-file-not-found", "max-mmap-limit", "max-resume-failure-tries",
    "max-tries", "max-upload-limit", "metalink-base-uri", "metalink-enable-unique-protocol",
    "metalink-language", "metalink-location", "metalink-os", "metalink-preferred-protocol",
    "metalink-version", "min-split-size", "no-file-allocation-limit", "no-netrc", "no-proxy",
    "no-want-digest-header", "parameterized-uri", "pause", "pause-metadata", "piece-length",
    "proxy-method", "realtime-chunk-checksum", "remote-time", "remove-control-file",
    "retry-wait", "reuse-uri", "rpc-save-upload-metadata", "save-not-found", "seed-ratio",
    "seed-time", "select-file", "split", "ssh-host-key-md", "stream-piece-selector", "timeout",
    "uri-selector", "use-head",
  ]
}
