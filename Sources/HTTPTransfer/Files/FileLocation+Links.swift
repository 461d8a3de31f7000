internal import Glibc
internal import HTTPTransferCore
internal import LinuxSystem

/// Resolves a path to a directory and a name in it.
extension FileLocation {
  typealias Place = (directory: Descriptor, name: String)

  static func joined(_ base: String, _ path: String) -> String {
    if base.isEmpty || base == "." { return path }
    return base.hasFinalSlash ? base + path : "\(base)/\(path)"
  }

  /// The place of a path that the user has given; the target of a symbolic link is replaced, not
  /// the link.
  ///
  /// The kernel follows links in the directories, by its rules. This method follows the last one,
  /// by the rule of `fs.protected_symlinks` (proc_sys_fs(5)): in a directory where all users may
  /// create names, it follows only links of this user or of the directory's owner. If a link leads
  /// to no file, the link itself is the place.
  static func place(_ path: String, creatingMissing: Bool) throws(FileFailure) -> Place {
    var followed = path
    var first: Place?
    for hop in 0..<linkLimit {
      guard !followed.hasFinalSlash else {
        throw FileFailure(
          code: .destination, reason: "'\(path)' names a directory; name a file in it",
          errno: EISDIR)
      }
      let parts = followed.pathParts()
      let name = try check(name: parts.last, of: path)
      var parent = (followed.isAbsolutePath ? "/" : "") + parts.dropLast().joined(separator: "/")
      if parent.isEmpty { parent = "." }
      let directory: Descriptor
      let link: (target: String, owner: uid_t)?
      let status: FileMetadata
      do throws(ErrorNumber) {
        directory = try SystemCalls.openDirectory(
          atPath: parent, creatingMissing: creatingMissing && hop == 0)
        status = try SystemCalls.status(directory.rawValue)
        link = try SystemCalls.symbolicLink(name, in: directory.rawValue)
        if hop > 0, link == nil { _ = try SystemCalls.status(name, in: directory.rawValue) }
      } catch {
        guard let first, [ENOENT, ENOTDIR].contains(error.rawValue) else {
          throw unusable(path, error)
        }
        return try danglingLink(first, path)
      }
      guard let link else { return (directory, name) }
      guard
        !status.isSharedAndSticky || link.owner == ProcessCalls.effectiveUserID
          || link.owner == status.owner
      else {
        throw FileFailure(
          code: .destination,
          reason: "'\(path)' is a symbolic link of another user, in a directory that all users"
            + " may write; name what it leads to", errno: EACCES)
      }
      if first == nil { first = (directory, name) }
      followed = link.target.isAbsolutePath ? link.target : joined(parent, link.target)
    }
    guard let first else { throw unusable(path, ErrorNumber(rawValue: ELOOP)) }
    return try danglingLink(first, path)
  }

  /// The place of a link whose text leads to no file.
  ///
  /// Links in `/proc`, and so `/dev/stderr`, lead to a file even then.
  private static func danglingLink(_ link: Place, _ path: String) throws(FileFailure) -> Place {
    guard SystemCalls.isDangling(link.name, in: link.directory.rawValue) else {
      throw FileFailure(
        code: .destination, reason: "'\(path)' is not a regular file; it cannot be replaced",
        errno: EINVAL)
    }
    return link
  }

  /// The limit of the kernel (path_resolution(7)).
  private static let linkLimit = 40

  /// The place of a path below `base` that another party may have chosen.
  ///
  /// No symbolic link on it is followed, so it cannot lead elsewhere.
  static func place(
    _ path: String, inside base: String, shown: String, creatingMissing: Bool
  ) throws(FileFailure) -> Place {
    let parts = path.pathParts(omittingEmpty: false)
    let name = try check(name: parts.last, of: shown)
    guard !parts.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }) else {
      throw FileFailure(
        code: .destination, reason: "'\(shown)' leads out of its directory", errno: EINVAL)
    }
    var directory: Descriptor
    do throws(ErrorNumber) {
      directory = try SystemCalls.openDirectory(
        atPath: base.isEmpty ? "." : base, creatingMissing: creatingMissing)
    } catch {
      throw unusable(shown, error)
    }
    for part in parts.dropLast() {
      do throws(ErrorNumber) {
        directory = try open(part, in: directory, creatingMissing: creatingMissing)
      } catch {
        guard [ENOTDIR, ELOOP].contains(error.rawValue),
          (try? SystemCalls.symbolicLink(part, in: directory.rawValue)) != nil
        else { throw unusable(shown, error) }
        throw FileFailure(
          code: .destination,
          reason: "'\(shown)' leads through the symbolic link '\(part)', which no name of a list or"
            + " URL may; name the directory itself", errno: ELOOP)
      }
    }
    return (directory, name)
  }

  private static func open(
    _ name: String, in directory: Descriptor, creatingMissing: Bool
  ) throws(ErrorNumber) -> Descriptor {
    do throws(ErrorNumber) {
      return try SystemCalls.openDirectory(name, in: directory.rawValue)
    } catch {
      guard creatingMissing, error.rawValue == ENOENT else { throw error }
    }
    _ = try SystemCalls.makeDirectory(name, in: directory.rawValue, permissions: 0o777)
    return try SystemCalls.openDirectory(name, in: directory.rawValue)
  }

  private static func unusable(_ path: String, _ error: ErrorNumber) -> FileFailure {
    FileFailure(
      code: .destination,
      reason: "cannot use the directory of '\(path)': \(error)",
      errno: error.rawValue)
  }
}
