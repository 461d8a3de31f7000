/// A file name that a server suggests, made safe for a directory that the user has chosen.
package enum SuggestedName {
  /// The name that a file may get.
  ///
  /// Directories before the name are dropped. `_` replaces control characters, invisible ones, and
  /// a dot or `-` at the start: a server must create neither settings nor words that commands take
  /// for options. A variation selector stays after a character that is seen and not of ASCII. A
  /// name of more than 255 bytes is cut before its extension.
  ///
  /// - Returns: nil if the name has nothing visible but dots, or is one of httpfs's own files.
  package static func safe(_ text: String) -> String? {
    let bytes = text.utf8
    let start = bytes.lastIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
    let name = Substring(bytes[(start.map { bytes.index(after: $0) } ?? bytes.startIndex)...])
    var trimmed = name.unicodeScalars.drop { $0.properties.isWhitespace }
    while let last = trimmed.last, last.properties.isWhitespace { trimmed.removeLast() }
    var scalars = zip(trimmed, [" "] + trimmed).map { scalar, last in
      isUnsafe(scalar) && !(isSelector(scalar) && isVisible(last) && !last.isASCII)
        ? "_" : scalar
    }
    guard trimmed.contains(where: isVisible) else { return nil }
    if scalars[0] == "." || scalars[0] == "-" || isJoiner(scalars[0]) { scalars[0] = "_" }
    let safe = cut(scalars)
    return safe.utf8.firstRange(of: ".httpfs-".utf8) == nil ? safe : nil
  }

  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    case .format: !isJoiner(scalar)
    // A Braille pattern without dots looks like a space.
    default: scalar.properties.isDefaultIgnorableCodePoint || scalar == "\u{2800}"
    }
  }

  /// Whether it is invisible, and some scripts need it between letters.
  private static func isJoiner(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "\u{200C}" || scalar == "\u{200D}"
  }

  /// Whether it chooses the form of the character before it, as that of an emoji.
  private static func isSelector(_ scalar: Unicode.Scalar) -> Bool {
    ("\u{FE00}"..."\u{FE0F}").contains(scalar)
  }

  /// Whether it is seen without other characters; a dot does not count.
  private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    if isUnsafe(scalar) || isJoiner(scalar) || scalar.properties.isWhitespace { return false }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .unassigned: return false
    default: return scalar != "."
    }
  }

  /// The longest extension that a cut name keeps, in characters.
  private static let maximumExtensionLength = 16

  /// The name in at most ``EntryPath/maximumSegmentByteCount`` bytes.
  private static func cut(_ scalars: [Unicode.Scalar]) -> String {
    let dot = scalars.lastIndex(of: ".") ?? scalars.endIndex
    let end = scalars.count - dot <= maximumExtensionLength ? dot : scalars.endIndex
    let ending = text(scalars[end...])
    var stem = scalars[..<end]
    var byteCount = text(scalars[...]).utf8.count
    while byteCount > EntryPath.maximumSegmentByteCount, let last = stem.popLast() {
      byteCount -= UTF8.width(last)
    }
    return text(stem) + ending
  }

  private static func text(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    var text = String.UnicodeScalarView()
    text.append(contentsOf: scalars)
    return String(text)
  }
}
