internal import Dispatch
internal import Synchronization

/// Makes the kernel forget bytes that readers have seen and that are known to be wrong.
///
/// Lock order: `action` is a leaf; the action runs without it, on the dropping queue.
final class PageInvalidator: Sendable {
  private let context: MountContext
  private let action = Mutex<(@Sendable (VersionID) -> Void)?>(nil)

  init(context: MountContext) { self.context = context }

  /// Sets the action that notifies the kernel.
  func set(_ action: @escaping @Sendable (VersionID) -> Void) {
    self.action.withLock { $0 = action }
  }

  /// Records that bytes of `version` which readers have seen are wrong.
  func invalidate(_ version: VersionID) {
    guard let action = action.withLock({ $0 }) else { return }
    // The action may wait for a read that is being answered, but not for the disk, as the
    // background queue may.
    context.droppingQueue.async { action(version) }
  }
}
