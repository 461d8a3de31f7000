internal import Synchronization

/// Counts the files that their servers have described and whose first bytes are arriving.
///
/// The end of the mount waits briefly for those bytes.
final class FirstBytes: Sendable {
  private let count = Atomic<Int>(0)

  func began() { count.wrappingAdd(1, ordering: .relaxed) }
  func ended() { count.wrappingSubtract(1, ordering: .relaxed) }

  var areAwaited: Bool { count.load(ordering: .relaxed) > 0 }
}
