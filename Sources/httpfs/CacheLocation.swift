import Glibc

/// The default cache directory without `--cache-dir`: `$XDG_CACHE_HOME/httpfs`, else
/// `~/.cache/httpfs` (XDG Base Directory Specification); nil if neither is known.
func defaultCacheDirectory() -> String? {
  // The specification says to ignore relative paths.
  if let base = environmentVariable("XDG_CACHE_HOME"), base.hasPrefix("/") {
    return "\(base)/httpfs"
  }
  return homeDirectory().map { "\($0)/.cache/httpfs" }
}

/// The user's home directory, from `HOME` or the system's user database; nil if unknown.
func homeDirectory() -> String? {
  if let home = environmentVariable("HOME"), home.hasPrefix("/") { return home }
  guard let account = getpwuid(geteuid()), let home = account.pointee.pw_dir else { return nil }
  return String(cString: home)
}

/// The value of an environment variable; nil if it is unset or empty.
func environmentVariable(_ name: String) -> String? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return String(cString: value)
}
