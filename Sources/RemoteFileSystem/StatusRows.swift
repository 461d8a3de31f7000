internal import ExtentRecord
internal import HTTPTransferCore
internal import MountStatus
internal import RemoteFiles

/// The files of a mount, one at a time: first those of the list in its order, then the files of
/// each listing that were looked up.
///
/// A listing may name a hundred thousand files.
struct StatusRows: Sendable {
  private let tree: FileTree
  private let environment: FileEnvironment
  /// The versions that the kernel reads directly.
  private let passthrough: Set<VersionID>
  private let pinned: Set<CacheKey>
  /// The files of the list that were looked up, in its order.
  private let known: [RemoteFile]
  private let listed: [RemoteFile]
  private let knownOnly: Bool

  /// Takes the files of `tree`; with `knownOnly` only those that were looked up.
  init(
    tree: FileTree, environment: FileEnvironment, passthrough: Set<VersionID>, knownOnly: Bool
  ) {
    self.tree = tree
    self.environment = environment
    self.passthrough = passthrough
    self.knownOnly = knownOnly
    pinned = environment.pinnedKeys
    known = tree.existingListFiles
    listed = tree.existingListedFiles
  }

  private var listCount: Int { knownOnly ? known.count : tree.sources.count }

  var count: Int { listCount + listed.count }

  subscript(index: Int) -> FileStatus {
    if index >= listCount { return listed[index - listCount].status(passthrough: passthrough) }
    if knownOnly { return known[index].status(passthrough: passthrough) }
    if let file = tree.existingFile(index) { return file.status(passthrough: passthrough) }
    let source = tree.sources[index]
    // A key is a hash, so it is not calculated if nothing is pinned.
    let isPinned = !pinned.isEmpty && pinned.contains(tree.cacheKey(index))
    var status = FileStatus(
      name: source.path, url: source.url.redacted, state: .unknown, pinned: isPinned)
    status.rateLimitBytesPerSecond = environment.listedRateLimit(of: source)
    return status
  }

  /// The current sums over all files.
  func sums(withNames: Bool) -> StatusSums {
    var sums = StatusSums()
    sums.addUnknown(count: tree.sources.count - known.count)
    for file in known { sums.add(file.status(passthrough: passthrough, isNamed: false)) }
    for file in listed { sums.add(file.status(passthrough: passthrough, isNamed: false)) }
    guard withNames else { return sums }
    for source in tree.sources where !sums.widen(for: source.path) { return sums }
    for file in listed where !sums.widen(for: file.source.path) { return sums }
    return sums
  }
}
