internal import Dispatch
internal import MountStatus
internal import RemoteFiles
internal import Synchronization

/// The tree that the mount shows; a reload of the list replaces it.
final class MountedTree: Sendable {
  private let tree: Mutex<FileTree>
  private let environment: FileEnvironment
  /// Reads the list again.
  private let reading = Mutex<(@Sendable () -> String?)?>(nil)
  private let reloads = Mutex(Reloads())
  /// The disk of a list may hang, and other background work must go on.
  private let queue = DispatchQueue(label: "httpfs.reload")

  private struct Reloads {
    var hasList = false
    var requested = 0
    var ended = 0
    /// Why the last one changed nothing.
    var error: String?
  }

  init(_ tree: FileTree, environment: FileEnvironment) {
    self.tree = Mutex(tree)
    self.environment = environment
  }

  var current: FileTree { tree.withLock { $0 } }

  /// Replaces the tree; open handles stay valid.
  func replace(sources: MountSources) {
    let old = current
    let new = FileTree(sources: sources, environment: environment, reusing: old)
    tree.withLock { $0 = new }
    let kept = Set(new.existingFiles.map { ObjectIdentifier($0) })
    environment.cancelPrefetch(
      of: old.existingFiles.filter { !kept.contains(ObjectIdentifier($0)) })
  }

  /// Sets the action of ``reload()``, which returns why it has changed nothing, in one line.
  func onReload(hasList: Bool, _ read: @escaping @Sendable () -> String?) {
    reading.withLock { $0 = read }
    reloads.withLock { $0.hasList = hasList }
  }

  /// Reads the list again soon; two reloads never overlap.
  func reload() {
    guard let read = reading.withLock({ $0 }) else { return }
    reloads.withLock { $0.requested += 1 }
    queue.async { [self] in
      let error = read()
      reloads.withLock { reloads in
        reloads.ended += 1
        reloads.error = error
      }
    }
  }

  /// What became of reading the list again.
  var list: ListStatus {
    reloads.withLock { reloads in
      ListStatus(
        isReadable: reloads.hasList, reloads: reloads.ended,
        isReloading: reloads.requested > reloads.ended, error: reloads.error)
    }
  }
}
