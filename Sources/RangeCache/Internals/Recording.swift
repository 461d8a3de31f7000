import Synchronization

/// The right to record under a key: one entry object has it, until another takes the key over or
/// the entry is removed.
///
/// Shared by the directory, which ends it, and the entry object, which looks at it; so neither has
/// to keep the other alive or to know whether it still is.
final class Recording: Sendable {
  private let ended = Atomic<Bool>(false)

  /// Whether the files under the key are no longer the holder's to write.
  var isEnded: Bool { ended.load(ordering: .acquiring) }

  func end() {
    ended.store(true, ordering: .releasing)
  }
}
