package import Glibc

/// The attributes of an inode, and for how long the kernel may cache them.
package struct FileAttributes: Sendable {
  /// How long the kernel may cache names, and attributes that do not change.
  ///
  /// Every `open` reaches this process anyway.
  package static let standardTimeout = 1.0

  package let inode: InodeNumber
  package let values: stat
  /// In seconds.
  package let timeout: Double
}
