internal import Synchronization

/// Names one version of one file within a mount; never used twice.
public struct VersionID: Hashable, Sendable {
  public let rawValue: UInt64
}

/// Numbers the versions of all files of a mount.
final class VersionCounter: Sendable {
  private let last = Atomic<UInt64>(0)

  /// A number that no other version of the mount has.
  func next() -> VersionID { VersionID(rawValue: last.add(1, ordering: .relaxed).newValue) }
}
