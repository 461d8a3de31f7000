/// How many columns of a terminal the text takes at most.
///
/// Terminals disagree about sequences that join to one emoji. Each part is counted, because a line
/// that is too short is better than a wrapped one.
///
/// - Parameter text: text without control characters (see ``displayable(_:isUTF8:)``).
/// - Returns: a number of columns.
package func displayWidth(_ text: String) -> Int {
  // Almost all names are ASCII, and a status may have a million of them.
  if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
  return text.reduce(0) { $0 + displayWidth($1) }
}

/// How many columns of a terminal the character takes at most.
///
/// East Asian wide characters and emoji take 2 columns, combining and invisible ones 0 (as in
/// `wcwidth`), all others 1.
///
/// - Parameter character: a grapheme cluster without control characters.
/// - Returns: a number of columns.
package func displayWidth(_ character: Character) -> Int {
  character.isASCII ? 1 : columnCounts(of: character).reduce(0, +)
}

/// The columns of each visible part of a character, 1 or 2; a line may be wrapped between parts.
///
/// - Parameter character: a grapheme cluster without control characters.
/// - Returns: one number for most characters, several for joined emoji, none for invisible ones.
package func columnCounts(of character: Character) -> [Int] {
  var counts: [Int] = []
  var previous: Unicode.Scalar?
  for scalar in character.unicodeScalars {
    let count = columnCount(scalar)
    if count > 0 {
      counts.append(count)
    } else if scalar == "\u{FE0F}", previous?.properties.isEmoji == true, counts.last == 1 {
      // The selector makes a wide emoji of a narrow sign, such as U+2764 or a digit.
      counts[counts.count - 1] = 2
    }
    previous = scalar
  }
  return counts
}

/// Makes everything in the text visible that could disturb a terminal or mislead a reader: control
/// characters, and those that reorder text (bidirectional controls).
///
/// - Parameters:
///   - text: any text, for example a file name of a server.
///   - isUTF8: whether the terminal shows more than ASCII; if not, each other character becomes
///     `?`.
/// - Returns: the text for display.
package func displayable(_ text: String, isUTF8: Bool = true) -> String {
  let escaped = escapingControls(text)
  if escaped.utf8.allSatisfy({ $0 < 0x80 }) { return escaped }
  return isUTF8 ? escaped : String(escaped.map { $0.isASCII ? $0 : "?" })
}

/// The text, with an ellipsis for its end if it is wider than `width` columns.
package func cutAtEnd(_ text: String, to width: Int, ellipsis: String) -> String {
  guard displayWidth(text) > width else { return text }
  let room = width - displayWidth(ellipsis)
  // In a few columns, an ellipsis would leave no useful text.
  guard room >= 2 else { return String(prefix(of: text, width: width)) }
  return prefix(of: text, width: room) + ellipsis
}

/// The text, with an ellipsis for its middle if it is wider than `width` columns: the ends of file
/// names distinguish files.
package func cutInMiddle(_ text: String, to width: Int, ellipsis: String) -> String {
  guard displayWidth(text) > width else { return text }
  let room = width - displayWidth(ellipsis)
  guard room >= 2 else { return String(prefix(of: text, width: width)) }
  return prefix(of: text, width: room - room / 2) + ellipsis + suffix(of: text, width: room / 2)
}

/// The text followed (`right`: preceded) by spaces up to `width` columns.
package func padded(_ text: String, to width: Int, right: Bool = false) -> String {
  let spaces = String(repeating: " ", count: max(0, width - displayWidth(text)))
  return right ? spaces + text : text + spaces
}

/// As much of the start as fits.
private func prefix(of text: String, width: Int) -> Substring {
  var used = 0
  return text.prefix { character in
    used += displayWidth(character)
    return used <= width
  }
}

/// As much of the end as fits.
private func suffix(of text: String, width: Int) -> Substring {
  var used = 0
  var start = text.endIndex
  for (index, character) in zip(text.indices, text).reversed() {
    used += displayWidth(character)
    if used > width { break }
    start = index
  }
  return text[start...]
}

/// How many columns a single scalar takes.
private func columnCount(_ scalar: Unicode.Scalar) -> Int {
  let value = scalar.value
  if value < 0x300 { return value == 0 ? 0 : 1 }
  // Vowels and final consonants of Hangul syllables that are written in parts.
  if (0x1160...0x11FF).contains(value) || (0xD7B0...0xD7FF).contains(value) { return 0 }
  if isWide(scalar) { return 2 }
  switch scalar.properties.generalCategory {
  case .nonspacingMark, .enclosingMark: return 0
  // Signs that enclose the digits after them are visible (Prepended_Concatenation_Mark).
  case .format: return visibleFormatSigns.contains(value) ? 1 : 0
  default: return 1
  }
}

private let visibleFormatSigns: Set<UInt32> = [
  0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD,
]

/// Whether the scalar is an emoji by default, or East_Asian_Width W or F by its block.
///
/// The standard library does not have that property of Unicode (UAX #11).
private func isWide(_ scalar: Unicode.Scalar) -> Bool {
  // Half a flag: terminals show two of them in two columns.
  if (0x1F1E6...0x1F1FF).contains(scalar.value) { return false }
  return wideBlocks.contains { $0.contains(scalar.value) } || scalar.properties.isEmojiPresentation
}

private let wideBlocks: [ClosedRange<UInt32>] = [
  0x1100...0x115F,  // Hangul initial consonants
  0x2329...0x232A,  // angle brackets
  0x2E80...0x303E,  // CJK radicals and punctuation
  0x3041...0x4DFF,  // kana, bopomofo, CJK letters and extension A, hexagrams
  0x4E00...0xA4CF,  // CJK ideographs, Yi
  0xA960...0xA97F,  // Hangul initial consonants, extended
  0xAC00...0xD7A3,  // Hangul syllables
  0xF900...0xFAFF,  // CJK compatibility ideographs
  0xFE10...0xFE19,  // vertical forms
  0xFE30...0xFE6F,  // CJK compatibility forms, small forms
  0xFF01...0xFF60,  // full-width forms
  0xFFE0...0xFFE6,  // full-width signs
  0x16FE0...0x18DFF,  // Tangut, Khitan
  0x1AFF0...0x1B2FF,  // kana supplements, Nüshu
  0x1D300...0x1D376,  // Tai Xuan Jing, counting rods
  0x1F200...0x1F2FF,  // enclosed ideographs
  0x1FA70...0x1FAFF,  // emoji, also those newer than the standard library
  0x20000...0x3FFFD,  // CJK ideographs, extensions B and later
]
