/// The default cache directory without `--cache-dir`: `$XDG_CACHE_HOME/httpfs`, else
/// `~/.cache/httpfs` (XDG Base Directory Specification); nil if neither is known.
func defaultCacheDirectory() -> String? {
  // The specification says to ignore relative paths.
  if let base = environmentVariable("XDG_CACHE_HOME"), base.hasPrefix("/") {
    return "\(base)/httpfs"
  }
  return homeDirectory().map { "\($0)/.cache/httpfs" }
}
