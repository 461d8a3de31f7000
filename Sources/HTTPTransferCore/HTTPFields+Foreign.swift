package import HTTPTypes

/// Fields from external sources: a limit on their number and on their lengths, and access to their
/// raw bytes.
extension HTTPFields {
  /// The most fields that are accepted from one response, or from one line of a list.
  ///
  /// `HTTPFields` traps at 65,535 fields and looks fields up linearly.
  package static let foreignLimit = 1000

  /// The most bytes of a value that is parsed: far more than a date, a range or a type needs.
  ///
  /// A line may have 100 KiB. To look at each of its characters takes tens of milliseconds, and no
  /// file should keep such a value.
  package static let readableLimit = 1024

  /// The value of a field that is parsed here; nil if it is absent, or longer than
  /// ``readableLimit`` and therefore meaningless.
  package func readable(_ name: HTTPField.Name) -> String? {
    guard let bytes = bytes(of: name), bytes.count <= Self.readableLimit else { return nil }
    return self[name]
  }

  /// Whether the media type begins with `start`, which is in lower case; the rest may have any
  /// length.
  package func hasMediaType(startingWith start: String) -> Bool {
    guard let bytes = bytes(of: .contentType) else { return false }
    return bytes.prefix(start.utf8.count).elementsEqual(start.utf8) { byte, expected in
      byte == expected || (0x41...0x5A).contains(byte) && byte | 0x20 == expected
    }
  }

  /// Appends a field from an external source.
  ///
  /// - Returns: false if there are too many already.
  package mutating func take(_ field: HTTPField) -> Bool {
    guard count < Self.foreignLimit else { return false }
    append(field)
    return true
  }

  /// The raw bytes of a field's value, those of several fields joined by commas; nil if it is
  /// absent.
  ///
  /// A string would hold U+FFFD for each byte that is not UTF-8, and would equal other strings of
  /// the same characters.
  package func bytes(of name: HTTPField.Name) -> [UInt8]? {
    let fields = self[fields: name]
    guard let first = fields.first else { return nil }
    var bytes = first.withUnsafeBytesOfValue { Array($0) }
    for field in fields.dropFirst() {
      bytes += [UInt8(ascii: ","), UInt8(ascii: " ")]
      field.withUnsafeBytesOfValue { bytes += $0 }
    }
    return bytes
  }
}
