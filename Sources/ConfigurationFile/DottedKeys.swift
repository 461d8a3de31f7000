/// Limits the dotted keys of a TOML document before toml++ reads them.
///
/// Each part of a key is a table within a table, which toml++ destroys recursively. Some 10,000
/// parts, in 20 KB of text, exhaust the stack. toml++ itself limits brackets and braces.
enum DottedKeys {
  /// More than any setting needs: `[mounts.NAME]` has two.
  static let mostParts = 16

  /// The line (from 1) of the first key with too many parts; nil if there is none.
  ///
  /// It counts dots outside of strings and comments. A number has one dot, and no other valid TOML
  /// has dots, so it never refuses a valid document with fewer parts.
  static func lineOfTooMany(in bytes: [UInt8]) -> Int? {
    var line = 1
    var dots = 0
    /// The opening quote of the string, and whether the string may continue on further lines.
    var string: (quote: UInt8, isLong: Bool)?
    var index = 0
    /// Whether the next three bytes are the same quote.
    func isTriple(_ quote: UInt8) -> Bool {
      index + 2 < bytes.count && bytes[index + 1] == quote && bytes[index + 2] == quote
    }
    while index < bytes.count {
      let byte = bytes[index]
      if byte == UInt8(ascii: "\n") { line += 1 }
      if let (quote, isLong) = string {
        if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\""), index + 1 < bytes.count,
          bytes[index + 1] != UInt8(ascii: "\n")
        {
          index += 1
        } else if byte == quote, !isLong || isTriple(quote) {
          string = nil
          if isLong { index += 2 }
        } else if byte == UInt8(ascii: "\n"), !isLong {
          // This is not valid TOML; the counting continues as if it were.
          string = nil
          dots = 0
        }
      } else {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"):
          string = (byte, isTriple(byte))
          if isTriple(byte) { index += 2 }
        case UInt8(ascii: "#"):
          while index + 1 < bytes.count, bytes[index + 1] != UInt8(ascii: "\n") { index += 1 }
        case UInt8(ascii: "."):
          dots += 1
          if dots >= mostParts { return line }
        case UInt8(ascii: "\n"), UInt8(ascii: "="), UInt8(ascii: ","), UInt8(ascii: "["),
          UInt8(ascii: "]"), UInt8(ascii: "{"), UInt8(ascii: "}"):
          dots = 0
        default: break
        }
      }
      index += 1
    }
    return nil
  }
}
