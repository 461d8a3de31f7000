import Glibc
import HTTPTransferCore

/// The source of a mount as the table of mounts shows it, where `mount -a` looks for it.
enum ShownSource {
  /// The first of `sources`, without secrets and as an absolute path.
  static func name(of sources: [String]) -> String {
    guard let first = sources.first, first != "-" else { return "httpfs" }
    var shown = first
    if let url = try? RemoteURL(first) {
      shown = "\(url.origin)\(url.path)"
    } else if let resolved = realpath(first, nil) {
      shown = String(cString: resolved)
      free(resolved)
    }
    return name(of: shown) ?? "httpfs"
  }

  /// The source as it is; nil if it may contain a secret, or a character with a meaning in the
  /// table.
  static func name(of source: String) -> String? {
    let isURL = source.contains("://")
    let hidden: Set<Character> = isURL ? ["@", "?", "#"] : []
    let isPlain = source.allSatisfy {
      !hidden.contains($0) && $0 != "," && $0 != "\\" && $0 != "\"" && $0.isASCII
        && !$0.isWhitespace && ($0.asciiValue ?? 0) >= 0x20 && $0 != "\u{7F}"
    }
    return isPlain ? source : nil
  }
}
