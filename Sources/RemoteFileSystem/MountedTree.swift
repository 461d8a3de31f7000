internal import RemoteFiles
internal import Synchronization

/// The tree that the mount shows; a reload of the list replaces it.
final class MountedTree: Sendable {
  private let tree: Mutex<FileTree>
  private let environment: FileEnvironment
  /// Reads the list again.
  private let reading = Mutex<(@Sendable () -> Void)?>(nil)

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

  /// Sets the action of ``reload()``.
  func onReload(_ read: @escaping @Sendable () -> Void) {
    reading.withLock { $0 = read }
  }

  /// Reads the list again soon; two reloads never overlap.
  func reload() {
    guard let read = reading.withLock({ $0 }) else { return }
    environment.background(read)
  }
}
