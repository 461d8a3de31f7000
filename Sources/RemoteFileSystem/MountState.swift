internal import MountStatus
internal import RemoteFiles

/// The state of the whole mount, from memory only, as `.status`, `.status.json` and `.metrics` show
/// it.
struct MountState: Sendable {
  let mountpoint: String
  let tree: MountedTree
  let inodes: InodeTable
  let environment: FileEnvironment
  let started = ContinuousClock.now

  /// The state in one form, written while it is read.
  func stream(_ form: StatusDocument.Form) -> StatusStream {
    let current = tree.current
    let rows = StatusRows(
      tree: current, environment: environment, passthrough: inodes.passthroughVersions,
      knownOnly: form == .metrics)
    var head = StatusReport(
      mountpoint: mountpoint, uptimeSeconds: (ContinuousClock.now - started) / .seconds(1),
      files: [], cache: environment.cacheStatus, kernel: inodes.status,
      verifiesServers: environment.verifiesServers,
      rateLimitBytesPerSecond: environment.rateLimit, timeouts: environment.timeouts)
    head.list = tree.list
    head.failedListings = current.failedListings(limit: StatusReport.maximumFailedListingCount)
    let document = StatusDocument(form, head: head, sums: rows.sums(withNames: form == .text))
    return StatusStream(document, fileCount: rows.count) { rows[$0] }
  }
}
