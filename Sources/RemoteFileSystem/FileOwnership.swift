internal import Glibc

/// The owner of a mount's files and the permissions of others: what `stat` shows and what the
/// kernel checks.
package struct FileOwnership: Sendable, Equatable {
  package var userID: UInt32
  package var groupID: UInt32
  /// The permissions that are denied to all users, as in umask(2).
  package var mask: UInt32

  package init(userID: UInt32, groupID: UInt32, mask: UInt32 = 0) {
    self.userID = userID
    self.groupID = groupID
    self.mask = mask
  }

  /// The user and the group of this process.
  package static var ofThisProcess: FileOwnership {
    FileOwnership(userID: getuid(), groupID: getgid())
  }
}
