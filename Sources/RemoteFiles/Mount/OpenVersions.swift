internal import LinuxSystem
internal import Synchronization

/// Counts the versions that have handles, each of which needs descriptors: an `open` that would take
/// those of the reads is refused instead.
final class OpenVersions: Sendable {
  /// The data file and its record.
  private static let descriptorCount = 2

  private let limit: Int
  private let count = Atomic<Int>(0)

  /// For a process that may have `descriptorLimit` descriptors: half of them, but what it has open
  /// besides, is for cache files; connections take a quarter.
  init(descriptorLimit: Int = ProcessCalls.descriptorLimit) {
    limit = max(4, (descriptorLimit / 2 - 8) / Self.descriptorCount)
  }

  /// - Returns: whether one more may be opened; ``end()`` follows then.
  func begin() -> Bool {
    if count.wrappingAdd(1, ordering: .relaxed).newValue <= limit { return true }
    end()
    return false
  }

  func end() { count.wrappingSubtract(1, ordering: .relaxed) }
}
