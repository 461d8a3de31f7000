internal import RemoteFiles

/// The number of an inode: the root, a control file, a directory, or one version of a file.
///
/// A mount never reuses a number. So the kernel's pages of an inode stay valid, and nothing must be
/// invalidated.
package struct InodeNumber: Hashable, Sendable {
  package let rawValue: UInt64

  /// The number that the kernel knows without a lookup (FUSE_ROOT_ID).
  package static let root = InodeNumber(rawValue: 1)

  /// Control files have numbers from 2, directories from 64.
  static let firstControl: UInt64 = 2
  static let firstDirectory: UInt64 = 64
  /// The numbers of versions are above those of directories.
  private static let firstVersion: UInt64 = 1 << 40

  init(rawValue: UInt64) { self.rawValue = rawValue }

  init(_ version: VersionID) { rawValue = Self.firstVersion + version.rawValue }
}
