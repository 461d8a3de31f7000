internal import CFuse
internal import RemoteFiles

/// The number of an inode: the root, a control file, a directory, or one version of a file.
///
/// A number is never used for two things in the life of a mount: pages that the kernel holds under
/// it stay true for ever, so that nothing ever has to be invalidated.
struct InodeNumber: Hashable, Sendable {
  let rawValue: UInt64

  static let root = InodeNumber(rawValue: UInt64(FUSE_ROOT_ID))

  /// Control files have the numbers from 2 on, directories those from 64 on.
  static let firstControl: UInt64 = 2
  static let firstDirectory: UInt64 = 64
  /// Versions are numbered above all directories.
  private static let firstVersion: UInt64 = 1 << 40

  init(rawValue: UInt64) { self.rawValue = rawValue }

  init(_ version: VersionID) { rawValue = Self.firstVersion + version.rawValue }
}
