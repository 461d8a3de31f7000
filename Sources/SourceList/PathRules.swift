/// The paths that `out=` and `dir=` may have.
package enum PathRules: Sendable {
  /// Paths that a mount can show: relative, without `..`, and not one of the mount's own names.
  case mount
  /// Any path, also several times: we wrote the list for the file system, from paths that the user
  /// gave. It may be empty, and nothing in it has a limit.
  case local
}
