package import HTTPTypes

/// Fields that come from outside: how many are taken, how much of them is read, and their bytes as they
/// came.
extension HTTPFields {
  /// The most fields that are taken from one response, or from one line of a list.
  ///
  /// `HTTPFields` ends the process at 65,535 of them, and looks fields up one by one.
  package static let foreignLimit = 1000

  /// The most bytes of a value that is read: a hundred times what a date, a range or a type needs.
  ///
  /// A line may have 100 KiB, of which a look at each character takes tens of milliseconds, and which nobody
  /// is to keep for each file.
  package static let readableLimit = 1024

  /// The value of a field that is read here; nil where there is none, or one that is longer than
  /// ``readableLimit`` and so can mean nothing.
  package func readable(_ name: HTTPField.Name) -> String? {
    guard let bytes = bytes(of: name), bytes.count <= Self.readableLimit else { return nil }
    return self[name]
  }

  /// Whether the media type begins with `start`, which is in lower case; however long the rest is.
  package func hasMediaType(startingWith start: String) -> Bool {
    guard let bytes = bytes(of: .contentType) else { return false }
    return bytes.prefix(start.utf8.count).elementsEqual(start.utf8) { byte, expected in
      byte == expected || (0x41...0x5A).contains(byte) && byte | 0x20 == expected
    }
  }

  /// Appends a field that comes from outside.
  ///
  /// - Returns: false where there are too many already.
  package mutating func take(_ field: HTTPField) -> Bool {
    guard count < Self.foreignLimit else { return false }
    append(field)
    return true
  }

  /// The value of a field as it came, byte by byte, those of several fields joined as the text would
  /// be; nil where there is none.
  ///
  /// A text would hold U+FFFD in the place of each byte that is no UTF-8, and be equal to other texts
  /// of the same characters.
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
