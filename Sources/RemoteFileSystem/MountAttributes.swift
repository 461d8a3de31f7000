internal import DirectoryListing
internal import Glibc
internal import HTTPTransferCore
internal import RemoteFiles

/// The attributes that the mount shows of its inodes: read-only files and directories of one owner.
struct MountAttributes: Sendable {
  private let ownership: FileOwnership
  private let inodes: InodeTable
  /// The mounting user.
  private let mountingUser: uid_t = getuid()
  private let mountTime: time_t = time(nil)

  init(ownership: FileOwnership, inodes: InodeTable) {
    self.ownership = ownership
    self.inodes = inodes
  }

  /// The owner of `.control`: the user for whom root mounts, or otherwise the mounting user,
  /// because only root can change owners.
  private var controllingUser: uid_t { mountingUser == 0 ? ownership.userID : mountingUser }

  /// Whether `user` may use `.control`.
  func mayControl(_ user: uid_t) -> Bool {
    user == controllingUser || user == mountingUser
  }

  /// The attributes of an inode that the kernel knows; nil if the table no longer has it.
  func of(_ number: UInt64) -> FileAttributes? {
    let inode = InodeNumber(rawValue: number)
    if inodes.directoryPath(number) != nil { return of(directory: inode) }
    if let control = ControlFile(inode: inode) { return of(control, timeout: 0) }
    switch inodes.file(number) {
    case .described(let version, _): return of(version)
    case .listed(_, let appearance): return of(appearance)
    case nil: return nil
    }
  }

  func of(directory number: InodeNumber) -> FileAttributes {
    make(number, mode: S_IFDIR | 0o555, byteCount: 0, modified: mountTime)
  }

  func of(_ control: ControlFile, timeout: Double) -> FileAttributes {
    let isControl = control == .control
    return make(
      control.inode, mode: S_IFREG | (isControl ? 0o600 : 0o444), byteCount: 0,
      modified: time(nil), owner: isControl ? controllingUser : nil, timeout: timeout)
  }

  /// The attributes of a version; the kernel must not cache a size that may still grow.
  func of(_ version: RemoteVersion) -> FileAttributes {
    let size = version.visibleSize
    let number = InodeNumber(version.id)
    // The size of other versions never changes.
    if version.content.completeLength == nil { inodes.recordSize(number, isFinal: size.isFinal) }
    return make(
      number, mode: S_IFREG | 0o444, byteCount: size.byteCount,
      modified: version.modificationTime.map { time_t($0) } ?? mountTime,
      timeout: size.isFinal ? FileAttributes.standardTimeout : 0)
  }

  /// The attributes of a listed file; the kernel must not cache them, because an open may change
  /// the time.
  func of(_ listed: ListedAttributes) -> FileAttributes {
    make(
      InodeNumber(listed.id), mode: S_IFREG | 0o444, byteCount: listed.facts.byteCount,
      modified: time_t(listed.facts.modificationTime), timeout: 0)
  }

  private func make(
    _ number: InodeNumber, mode: mode_t, byteCount: Int64, modified: time_t, owner: uid_t? = nil,
    timeout: Double = FileAttributes.standardTimeout
  ) -> FileAttributes {
    var values = stat()
    values.st_ino = ino_t(number.rawValue)
    values.st_mode = mode & ~ownership.mask
    values.st_nlink = mode & S_IFMT == S_IFDIR ? 2 : 1
    values.st_uid = owner ?? ownership.userID
    values.st_gid = ownership.groupID
    values.st_size = off_t(byteCount)
    // With fewer blocks, tools assume holes and look for zeros that do not exist.
    values.st_blocks = blkcnt_t(byteCount / 512 + (byteCount % 512 == 0 ? 0 : 1))
    values.st_blksize = 128 << 10
    values.st_mtim.tv_sec = modified
    values.st_ctim.tv_sec = modified
    values.st_atim.tv_sec = modified
    return FileAttributes(inode: number, values: values, timeout: timeout)
  }
}
