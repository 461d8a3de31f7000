internal import Synchronization

/// Identifies one version of one file within a mount; never reused.
package struct VersionID: Hashable, Sendable {
  package let rawValue: UInt64
}

/// Numbers the versions of all files of a mount.
final class VersionCounter: Sendable {
  private let last = Atomic<UInt64>(0)

  /// A number that no other version of the mount has.
  func next() -> VersionID { VersionID(rawValue: last.add(1, ordering: .relaxed).newValue) }
}
