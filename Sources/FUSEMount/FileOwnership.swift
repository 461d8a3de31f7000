internal import Glibc

/// Whom the files of a mount belong to, and what the others may do: what `stat` shows, and what the
/// kernel goes by.
public struct FileOwnership: Sendable, Equatable {
  public var userID: UInt32
  public var groupID: UInt32
  /// The permissions that nobody has, as in umask(2).
  public var mask: UInt32

  public init(userID: UInt32, groupID: UInt32, mask: UInt32 = 0) {
    self.userID = userID
    self.groupID = groupID
    self.mask = mask
  }

  /// The user and the group of this process, who mounts.
  public static var ofThisProcess: FileOwnership {
    FileOwnership(userID: getuid(), groupID: getgid())
  }
}
