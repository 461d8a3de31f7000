import ExtentRecord
import Glibc
import HTTPTransferCore
import SourceList

/// Where caches are without `--cache-dir`: `$XDG_CACHE_HOME/httpfs`, else `~/.cache/httpfs` (XDG
/// Base Directory Specification); nil if neither is known.
func defaultCacheDirectory() -> String? {
  // The specification says to ignore relative paths.
  if let base = environmentVariable("XDG_CACHE_HOME"), base.hasPrefix("/") {
    return "\(base)/httpfs"
  }
  return homeDirectory().map { "\($0)/.cache/httpfs" }
}

/// The cache of a mount of `sources` without `--cache-dir`, below ``defaultCacheDirectory()``.
///
/// The same sources get the same cache, and other sources get another one, so that any number of
/// mounts run at the same time. `list`, which they contain, tells lists from standard input apart.
func defaultCacheDirectory(ofSources sources: [String], list: SourceList) -> String? {
  guard let base = defaultCacheDirectory() else { return nil }
  let identities = sources.map { source -> String in
    // A new signature or password leads to the same bytes.
    if source.contains("://") {
      return (try? RemoteURL(source))?.withoutSignature ?? source
    }
    if source == "-" { return list.entries.map(\.url.withoutSignature).joined(separator: "\n") }
    guard let resolved = realpath(source, nil) else { return source }
    defer { free(resolved) }
    return String(cString: resolved)
  }
  // A URL without its secrets.
  let named = sources.last == "-" ? "list" : identities.last
  let last = named?.prefix { $0 != "?" }.split(separator: "/").last ?? "list"
  let readable = last.utf8.prefix(48).map { byte -> Character in
    let scalar = Unicode.Scalar(byte)
    let isLetter = scalar.isASCII && scalar.properties.isAlphabetic
    return isLetter || (0x30...0x39).contains(byte) ? Character(scalar) : "-"
  }
  let hash = CacheKey(identities.joined(separator: "\n")).hex.prefix(16)
  return "\(base)/mounts/\(String(readable))-\(hash)"
}

/// The caches of this user without `--cache-dir`; empty if there is none.
func existingCacheDirectories() -> [String] {
  guard let base = defaultCacheDirectory() else { return [] }
  var paths = [base]
  if let directory = opendir("\(base)/mounts") {
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { paths.append("\(base)/mounts/\(name)") }
    }
  }
  // A directory without this name is no cache.
  return paths.sorted().filter { access("\($0)/v1", F_OK) == 0 }
}
