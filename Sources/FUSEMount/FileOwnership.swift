internal import Glibc

/// The owner of a mount's files and the permissions of others: what `stat` shows and what the
/// kernel checks.
public struct FileOwnership: Sendable, Equatable {
  public var userID: UInt32
  public var groupID: UInt32
  /// The permissions that are denied to everybody, as in umask(2).
  public var mask: UInt32

  public init(userID: UInt32, groupID: UInt32, mask: UInt32 = 0) {
    self.userID = userID
    self.groupID = groupID
    self.mask = mask
  }

  /// The user and the group of this process.
  public static var ofThisProcess: FileOwnership {
    FileOwnership(userID: getuid(), groupID: getgid())
  }
}
