/// The rules for one name of a file or directory in the mount.
public enum EntryName {
  /// Whether a name that a server gives can be one: not empty, `.` or `..`, at most 255 bytes, without
  /// `/` and control characters and, at the mount's root, none of the mount's own.
  ///
  /// Other than the name that a list's URL gives, it is not made safe: the server would have another file
  /// of the name that comes of that.
  public static func isAllowed(_ name: String, atRoot: Bool) -> Bool {
    guard !name.utf8.contains(UInt8(ascii: "/")) else { return false }
    do throws(EntryPath.Problem) {
      try EntryPath.check(name, atRoot: atRoot)
      return true
    } catch {
      return false
    }
  }
}
