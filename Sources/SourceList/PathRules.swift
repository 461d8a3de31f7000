/// Which paths `out=` and `dir=` may give.
public enum PathRules: Sendable {
  /// Those that a mount can show: relative, without `..`, without the names of the mount's own.
  case mount
  /// Any: the list was written by ourselves for the file system, from paths that the user gave.
  case local
}
