import Synchronization

/// The right to record under a key.
///
/// One entry object has it until another object of the key is opened or the entry is removed.
///
/// The directory, which ends it, and the entry object, which checks it, share it. So neither has to
/// keep the other alive or to know whether it still exists.
final class RecordLease: Sendable {
  private let ended = Atomic<Bool>(false)

  /// Whether the holder must no longer write the files of the key.
  var isEnded: Bool { ended.load(ordering: .acquiring) }

  func end() {
    ended.store(true, ordering: .releasing)
  }
}
