internal import TextFormat

/// The state of a mount at one moment: the content of `.status` and `.status.json`.
///
/// `docs/STATUS.md` documents the schema. Within one version, keys are never renamed or removed;
/// new keys may be added.
package struct StatusReport: Sendable, Hashable, Decodable {
  /// The version of the schema that this code writes.
  package static let currentVersion = 1

  package var version: Int

  /// The absolute path of the mount point.
  package var mountpoint: String

  /// The time since the mount began, in seconds.
  package var uptimeSeconds: Double

  /// Whether https servers must prove their identity; false with `--insecure`.
  package var verifiesServers: Bool

  /// The maximum number of bytes per second for all files together; nil for no limit.
  package var rateLimitBytesPerSecond: Int64?

  /// How long reads wait for servers; nil in reports of earlier versions.
  package var timeouts: TimeoutStatus?

  package var totals: StatusTotals

  package var cache: CacheStatus

  package var kernel: KernelStatus

  /// What became of reading the list again; nil in reports of earlier versions.
  package var list: ListStatus? = ListStatus()

  /// The directories whose servers have not sent their listings, at most
  /// ``maximumFailedListingCount``; nil in reports of earlier versions.
  package var failedListings: [FailedListing]? = []

  /// More are not worth reading.
  package static let maximumFailedListingCount = 100

  /// The files, in the order of the list.
  package var files: [FileStatus]

  /// Creates the report of `files` and calculates their totals.
  package init(
    mountpoint: String, uptimeSeconds: Double, files: [FileStatus],
    cache: CacheStatus = CacheStatus(), kernel: KernelStatus = KernelStatus(),
    verifiesServers: Bool = true, rateLimitBytesPerSecond: Int64? = nil,
    timeouts: TimeoutStatus? = nil
  ) {
    self.version = Self.currentVersion
    self.mountpoint = mountpoint
    self.uptimeSeconds = uptimeSeconds
    self.totals = StatusSums(of: files).totals
    self.files = files
    self.cache = cache
    self.kernel = kernel
    self.verifiesServers = verifiesServers
    self.rateLimitBytesPerSecond = rateLimitBytesPerSecond
    self.timeouts = timeouts
  }

  enum CodingKeys: String, CodingKey {
    case version, mountpoint
    case uptimeSeconds = "uptime_seconds"
    case verifiesServers = "verifies_servers"
    case rateLimitBytesPerSecond = "rate_limit_bytes_per_second"
    case timeouts, totals, cache, kernel
    case list
    case failedListings = "failed_listings"
    case files
  }

  /// The report as one line of JSON, UTF-8, with a newline at its end.
  ///
  /// Every key is always present; an unknown value is `null`. Written without `JSONEncoder`, so
  /// that polling a mount of 10,000 files takes only milliseconds.
  package func json() -> [UInt8] { written(as: .json) }

  func written(as form: StatusDocument.Form) -> [UInt8] {
    StatusDocument(form, head: self, sums: StatusSums(of: files)).bytes(of: files)
  }

  /// The same without files, except that the totals stay.
  var jsonOfHead: [UInt8] {
    var writer = JSONWriter(capacity: 1024)
    writer.object { writer in
      writer.member(CodingKeys.version, version)
      writer.member(CodingKeys.mountpoint, mountpoint)
      writer.member(CodingKeys.uptimeSeconds, uptimeSeconds)
      writer.member(CodingKeys.verifiesServers, verifiesServers)
      writer.member(CodingKeys.rateLimitBytesPerSecond, rateLimitBytesPerSecond)
      if let timeouts { writer.member(CodingKeys.timeouts) { timeouts.write(to: &$0) } }
      writer.member(CodingKeys.totals) { totals.write(to: &$0) }
      writer.member(CodingKeys.cache) { cache.write(to: &$0) }
      writer.member(CodingKeys.kernel) { kernel.write(to: &$0) }
      if let list { writer.member(CodingKeys.list) { list.write(to: &$0) } }
      writer.member(CodingKeys.failedListings) { writer in
        writer.array(failedListings ?? []) { $0.write(to: &$1) }
      }
      writer.member(CodingKeys.files) { writer in
        writer.array([FileStatus]()) { $0.write(to: &$1) }
      }
    }
    writer.newline()
    return writer.bytes
  }
}
