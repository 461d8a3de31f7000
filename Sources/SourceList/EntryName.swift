/// The rules for one name of a file or directory in the mount.
package enum EntryName {
  /// Whether a server's name can be used: not empty, not `.` or `..`, at most 255 bytes, without
  /// `/` and control characters, and, at the mount's root, not one of the mount's own names.
  ///
  /// Unlike a name from a list's URL, it is not made safe, because the server may have a different
  /// file with the resulting name.
  package static func isAllowed(_ name: String, atRoot: Bool) -> Bool {
    guard !name.utf8.contains(UInt8(ascii: "/")) else { return false }
    do throws(EntryPath.Problem) {
      try EntryPath.check(name, atRoot: atRoot)
      return true
    } catch {
      return false
    }
  }
}
