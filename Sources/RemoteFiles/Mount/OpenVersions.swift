internal import LinuxSystem
internal import Synchronization

/// Counts the versions that have handles, each of which needs descriptors.
///
/// An `open` that would use the descriptors of reads is refused.
final class OpenVersions: Sendable {
  /// The data file and its record.
  private static let descriptorCount = 2

  private let limit: Int
  private let count = Atomic<Int>(0)

  /// Creates the count for a process that may have `descriptorLimit` descriptors.
  ///
  /// Half of them, less what the process has open otherwise, are for cache files; connections use a
  /// quarter.
  init(descriptorLimit: Int = ProcessCalls.descriptorLimit) {
    limit = max(4, (descriptorLimit / 2 - 8) / Self.descriptorCount)
  }

  /// Counts one more open version, if the limit permits.
  ///
  /// - Returns: whether it may be opened; if so, ``end()`` must follow.
  func begin() -> Bool {
    if count.wrappingAdd(1, ordering: .relaxed).newValue <= limit { return true }
    end()
    return false
  }

  func end() { count.wrappingSubtract(1, ordering: .relaxed) }
}
