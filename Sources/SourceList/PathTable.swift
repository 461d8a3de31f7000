internal import HTTPTransferCore

/// The paths of a list.
///
/// Finds duplicate names, and names of both a file and a directory.
struct PathTable {
  /// A path and the two lines that claim it.
  struct Clash: Equatable {
    let path: String
    let firstLine: Int
    let secondLine: Int
  }

  private var fileLines: [PathKey: Int] = [:]
  private var directoryLines: [PathKey: Int] = [:]

  /// The directory of the last file: most lists name one directory many times in a row.
  private var lastDirectory: Substring = ""

  /// Adds a file.
  ///
  /// - Returns: The line that already has the name, or nil.
  mutating func insert(_ path: String, line: Int) -> Int? {
    let key = PathKey(path)
    let known = fileLines.updateValue(line, forKey: key)
    if let known {
      fileLines[key] = known
      return known
    }
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return nil }
    var directory = path[..<slash]
    guard !directory.utf8.elementsEqual(lastDirectory.utf8) else { return nil }
    lastDirectory = directory
    // The directories above a known directory are known too.
    while directoryLines[PathKey(directory)] == nil {
      directoryLines[PathKey(directory)] = line
      guard let parent = directory.utf8.lastIndex(of: UInt8(ascii: "/")) else { break }
      directory = directory[..<parent]
    }
    return nil
  }

  /// The files whose path is also a directory, ascending by the later of the two lines.
  func clashes() -> [Clash] {
    directoryLines.compactMap { path, directoryLine in
      fileLines[path].map { fileLine in
        Clash(
          path: path.text, firstLine: min(fileLine, directoryLine),
          secondLine: max(fileLine, directoryLine))
      }
    }
    .sorted { ($0.secondLine, $0.path) < ($1.secondLine, $1.path) }
  }
}
