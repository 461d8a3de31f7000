/// A pattern of paths.
///
/// `*` matches any run of characters, including slashes; the run may be empty. `?` matches one
/// character, and every other character matches itself.
package struct GlobPattern: Hashable, Sendable {
  package let text: String
  private let pattern: [UInt8]

  package init(_ text: String) {
    self.text = text
    pattern = Array(text.utf8)
  }

  /// Whether the whole of `path` matches the pattern; bytes are compared exactly.
  package func matches(_ path: String) -> Bool {
    let path = Array(path.utf8)
    var patternIndex = 0
    var pathIndex = 0
    /// The position to continue from if the last star must match one byte more.
    var retry: (patternIndex: Int, pathIndex: Int)?
    while pathIndex < path.count {
      if patternIndex < pattern.count, pattern[patternIndex] == UInt8(ascii: "*") {
        patternIndex += 1
        retry = (patternIndex, pathIndex)
      } else if patternIndex < pattern.count,
        pattern[patternIndex] == UInt8(ascii: "?") || pattern[patternIndex] == path[pathIndex]
      {
        patternIndex += 1
        pathIndex += 1
      } else if let (afterStar, start) = retry {
        patternIndex = afterStar
        pathIndex = start + 1
        retry = (afterStar, start + 1)
      } else {
        return false
      }
    }
    return pattern[patternIndex...].allSatisfy { $0 == UInt8(ascii: "*") }
  }
}
