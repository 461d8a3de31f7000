import Glibc
import HTTPTransferCore

/// Absolute paths without `.`, `..` and double slashes; links are not resolved.
enum AbsolutePath {
  /// The working directory, which no command changes.
  private static let workingDirectory: String = {
    guard let directory = getcwd(nil, 0) else { return "" }
    defer { free(directory) }
    return String(cString: directory)
  }()

  /// The absolute form of a path.
  static func of(_ path: String) -> String {
    let whole = path.isAbsolutePath ? path : "\(workingDirectory)/\(path)"
    var parts: [String] = []
    for part in whole.pathParts() where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
  }
}
