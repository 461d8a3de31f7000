/// A `Content-Range` field of unit `bytes` (RFC 9110 §14.4).
package struct ContentRange: Hashable, Sendable {
  /// The bytes that the body carries; nil in an unsatisfied range (`bytes */1234`).
  package let range: ByteRange?

  /// The complete length in bytes; nil if the server sent `*`.
  package let completeLength: Int64?

  package init(range: ByteRange?, completeLength: Int64?) {
    self.range = range
    self.completeLength = completeLength
  }

  /// Parses a field value.
  ///
  /// Returns nil unless the value is well formed, of unit `bytes`, and consistent: the last byte
  /// must lie neither before the first nor at or after the length. Numbers beyond
  /// `Int64.maximumFileOffset` are rejected as well.
  package init?(field: String) {
    let text = Substring(field).trimmed
    let unit = "bytes"
    guard text.count > unit.count, text.prefix(unit.count).lowercased() == unit else { return nil }
    let rest = text.dropFirst(unit.count)
    guard rest.first == " " || rest.first == "\t" else { return nil }
    let halves = rest.trimmed.split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    let length: Int64?
    if halves[1] == "*" {
      length = nil
    } else if let number = Int64(length: halves[1]) {
      length = number
    } else {
      return nil
    }
    if halves[0] == "*" {
      guard length != nil else { return nil }
      self.init(range: nil, completeLength: length)
      return
    }
    let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Int64(digits: ends[0]), let last = Int64(digits: ends[1]),
      first <= last, last < Int64.maximumFileOffset
    else { return nil }
    if let length, last >= length { return nil }
    self.init(range: first..<(last + 1), completeLength: length)
  }
}

extension Int64 {
  /// The sum, clamped to the range of the type: lengths come from servers, which may send anything.
  package func saturatingSum(_ other: Int64) -> Int64 {
    let (sum, overflows) = addingReportingOverflow(other)
    guard overflows else { return sum }
    return self < 0 ? .min : .max
  }

  /// The greatest length or offset that is accepted.
  ///
  /// Sums of two such numbers stay far from overflow, and no file system supports larger files.
  package static let maximumFileOffset: Int64 = 1 << 60

  /// Parses a length in bytes: only ASCII digits; nil beyond ``maximumFileOffset``.
  ///
  /// Use this for every length from an external source: the result can safely be added, rounded up
  /// and split into blocks.
  package init?(length text: some StringProtocol) {
    guard let value = Int64(digits: text), value <= Self.maximumFileOffset else { return nil }
    self = value
  }

  /// Parses one or more ASCII digits; nil for any other text and on overflow.
  package init?(digits text: some StringProtocol) {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let value = Int64(text)
    else { return nil }
    self = value
  }
}
