internal import Glibc
internal import LinuxSystem
internal import Synchronization

/// Who may do what with a file that is about to get its name.
extension FilePlacement {
  /// Gives the new file the permissions, the group and the access list of what it replaces, else what
  /// the kernel gives a new file.
  ///
  /// Only of a file of this user's with one name: somebody else's may have been put there for its
  /// permissions, and takes some away at most. Never the bits that let a program run as its owner: what
  /// comes from elsewhere must not.
  func setPermissions(
    of file: Descriptor, replacing replaced: Replacement
  ) throws(ErrorNumber) {
    let old: Descriptor?
    switch replaced {
    case .nothing: old = nil
    case .result(let result): old = result.file
    case .anything:
      old = try? SystemCalls.openForReading(location.name, in: location.directory.rawValue)
    }
    let status =
      if let old { try SystemCalls.status(old.rawValue) } else { statusOfUnreadable(replaced) }
    guard let status, status.isRegularFile else {
      let permissions = permissionsOfNewFile
      if let permissions { try SystemCalls.setPermissions(file.rawValue, to: permissions) }
      return
    }
    var permissions = status.permissions & 0o777
    if status.owner != ProcessCalls.effectiveUserID || status.linkCount > 1 {
      permissions = permissions & (permissionsOfNewFile ?? 0) | 0o600
    } else if !copyGroup(of: status, to: file) || !copyAccessList(of: old, to: file) {
      permissions &= ~0o070
    }
    try SystemCalls.setPermissions(file.rawValue, to: permissions)
  }

  /// What is known of a file that is to be replaced and may not be read.
  private func statusOfUnreadable(_ replaced: Replacement) -> FileMetadata? {
    guard case .anything = replaced else { return nil }
    return try? SystemCalls.status(location.name, in: location.directory.rawValue)
  }

  private func copyGroup(of status: FileMetadata, to file: Descriptor) -> Bool {
    if let own = try? SystemCalls.status(file.rawValue).group, own == status.group { return true }
    return (try? SystemCalls.setGroup(file.rawValue, to: status.group)) != nil
  }

  /// Gives a file the access list of another one, or none where that has none: the group's bits then are
  /// the group's, and no mask (acl(5)).
  private func copyAccessList(of old: Descriptor?, to file: Descriptor) -> Bool {
    guard let old else { return false }
    let name = "system.posix_acl_access"
    let list = SystemCalls.attribute(name, of: old.rawValue)
    guard (try? SystemCalls.setAttribute(name, of: file.rawValue, to: list)) != nil else {
      return false
    }
    // One of the directory's default list is not taken away without a word.
    return list != nil || SystemCalls.attribute(name, of: file.rawValue) == nil
  }

  /// The permission bits that the kernel gives a new file here, by the umask or the directory's access
  /// list; nil where none can be created.
  ///
  /// Asked once a second for a directory: a list may have thousands of files, and ext4 searches long
  /// for the inode of a file that comes right after another one was removed.
  private var permissionsOfNewFile: mode_t? {
    let (probeName, directory) = (location.probeName, location.directory)
    guard let place = try? SystemCalls.status(directory.rawValue).identity else { return nil }
    let now = ContinuousClock.now
    let known = Self.lastAnswer.withLock { $0 }
    if let known, known.place == place, now - known.moment < .seconds(1) {
      return known.permissions
    }
    guard
      let file = try? SystemCalls.createAnew(probeName, in: directory.rawValue, permissions: 0o666)
    else { return nil }
    defer { try? SystemCalls.unlink(probeName, in: directory.rawValue) }
    guard let permissions = try? SystemCalls.status(file.rawValue).permissions else { return nil }
    Self.lastAnswer.withLock {
      $0 = PermissionsAnswer(place: place, permissions: permissions, moment: now)
    }
    return permissions
  }

  private static let lastAnswer = Mutex<PermissionsAnswer?>(nil)
}

/// What the kernel gave a new file of a directory.
private struct PermissionsAnswer {
  let place: FileMetadata.Identity
  let permissions: mode_t
  let moment: ContinuousClock.Instant
}
