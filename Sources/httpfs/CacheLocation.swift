import Glibc

/// Where the cache is unless `--cache-dir` says otherwise: `$XDG_CACHE_HOME/httpfs`, else
/// `~/.cache/httpfs` (XDG Base Directory Specification); nil where neither is known.
func defaultCacheDirectory() -> String? {
  // The specification wants relative paths ignored.
  if let base = environmentVariable("XDG_CACHE_HOME"), base.hasPrefix("/") {
    return "\(base)/httpfs"
  }
  return homeDirectory().map { "\($0)/.cache/httpfs" }
}

/// The user's home directory, by `HOME`, else as the system knows it; nil where neither does.
func homeDirectory() -> String? {
  if let home = environmentVariable("HOME"), home.hasPrefix("/") { return home }
  guard let account = getpwuid(geteuid()), let home = account.pointee.pw_dir else { return nil }
  return String(cString: home)
}

/// The value of an environment variable; nil where it is not set or empty.
func environmentVariable(_ name: String) -> String? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return String(cString: value)
}
