package import CLinux
internal import Glibc

/// Calls about owners, symbolic links and extended attributes of files.
extension SystemCalls {
  /// Changes a file's group to one of this user's groups (`fchown(2)`).
  package static func setGroup(_ descriptor: CInt, to group: gid_t) throws(ErrorNumber) {
    _ = try checked { Glibc.fchown(descriptor, uid_t.max, group) }
  }

  /// The text and the owner of a symbolic link; nil if `name` is not a link or does not exist.
  package static func symbolicLink(
    _ name: String, in directory: CInt
  ) throws(ErrorNumber) -> (target: String, owner: uid_t)? {
    var text = [CChar](repeating: 0, count: Int(PATH_MAX))
    var owner: uid_t = 0
    do throws(ErrorNumber) {
      let count = try checked { httpfs_read_link(directory, name, &text, UInt(text.count), &owner) }
      let bytes = text[..<Int(count)].map { UInt8(bitPattern: $0) }
      guard Int(count) < text.count, let target = String(validating: bytes, as: UTF8.self) else {
        throw ErrorNumber(rawValue: ENAMETOOLONG)
      }
      return (target, owner)
    } catch {
      if [EINVAL, ENOENT].contains(error.rawValue) { return nil }
      throw error
    }
  }

  /// Whether the target of a link does not exist for the kernel (`fstatat(2)`).
  package static func isDangling(_ name: String, in directory: CInt) -> Bool {
    var status = stat()
    guard fstatat(directory, name, &status, 0) != 0 else { return false }
    return [ENOENT, ENOTDIR, ELOOP].contains(errno)
  }

  // MARK: Extended attributes

  /// The value of an extended attribute; nil if there is none (`fgetxattr(2)`).
  package static func attribute(_ name: String, of descriptor: CInt) -> [UInt8]? {
    // The maximum size of a value on Linux.
    var value = [UInt8](repeating: 0, count: 64 << 10)
    let count = fgetxattr(descriptor, name, &value, value.count)
    return count >= 0 ? Array(value[..<count]) : nil
  }

  /// Sets an extended attribute (`fsetxattr(2)`), or removes it if `value` is nil.
  package static func setAttribute(
    _ name: String, of descriptor: CInt, to bytes: [UInt8]?
  ) throws(ErrorNumber) {
    guard let bytes else {
      _ = fremovexattr(descriptor, name)
      return
    }
    _ = try checked { fsetxattr(descriptor, name, bytes, bytes.count, 0) }
  }
}
