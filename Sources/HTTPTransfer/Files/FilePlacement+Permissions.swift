internal import Glibc
internal import LinuxSystem
internal import Synchronization

/// Sets the permissions of a file that is about to get its name.
extension FilePlacement {
  /// Gives the new file the permissions, group and access list of the file that it replaces.
  ///
  /// If it replaces none, it gets those of a new file. A file of another user, or with several
  /// names, may have been put there for its permissions: it can only take some away. The bits that
  /// let a program run as its owner are never copied, because the bytes come from elsewhere.
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

  /// The status of a file that is to be replaced and may not be read; nil if unknown.
  private func statusOfUnreadable(_ replaced: Replacement) -> FileMetadata? {
    guard case .anything = replaced else { return nil }
    return try? SystemCalls.status(location.name, in: location.directory.rawValue)
  }

  private func copyGroup(of status: FileMetadata, to file: Descriptor) -> Bool {
    if let own = try? SystemCalls.status(file.rawValue).group, own == status.group { return true }
    return (try? SystemCalls.setGroup(file.rawValue, to: status.group)) != nil
  }

  /// Copies the access list of another file, or removes the list if that file has none.
  ///
  /// Without a list, the group's bits apply to the group, and are no mask (acl(5)).
  private func copyAccessList(of old: Descriptor?, to file: Descriptor) -> Bool {
    guard let old else { return false }
    let name = "system.posix_acl_access"
    let list = SystemCalls.attribute(name, of: old.rawValue)
    guard (try? SystemCalls.setAttribute(name, of: file.rawValue, to: list)) != nil else {
      return false
    }
    // Check that a list from the directory's default is really gone.
    return list != nil || SystemCalls.attribute(name, of: file.rawValue) == nil
  }

  /// The permission bits that the kernel gives a new file here; nil if none can be created.
  ///
  /// They depend on the umask or on the directory's access list. They are determined at most once a
  /// second for a directory: a list may have thousands of files, and ext4 searches long for an
  /// inode right after a file was removed.
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

/// The permissions that the kernel gave a new file of a directory.
private struct PermissionsAnswer {
  let place: FileMetadata.Identity
  let permissions: mode_t
  let moment: ContinuousClock.Instant
}
