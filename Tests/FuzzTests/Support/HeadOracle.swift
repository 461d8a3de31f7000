import HTTPTransferCore

/// The meanings that a head of a response may have, decided from its bytes by few rules.
struct HeadOracle {
  /// The status code of the final head.
  let status: Int

  /// The fields of the final head in order, names in lower case.
  private var fields: [(name: String, value: String)] = []

  /// Reads the lines of a head up to the blank line after the final one; nil if there is none.
  init?(lines: [[UInt8]]) {
    var status: Int?
    if lines.count > 2000 { return nil }
    // Whether the previous line was a field, which a fold continues.
    var isAfterField = false
    for line in lines {
      var bytes = line[...]
      while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
      if bytes.starts(with: Array("HTTP/".utf8)) {
        let words = bytes.split(separator: 0x20, maxSplits: 2)
        guard words.count >= 2, words[1].count == 3, let code = Self.number(words[1]), code >= 100
        else { return nil }
        status = Int(code)
        fields = []
        isAfterField = false
      } else if status == nil {
        return nil
      } else if let status, bytes.isEmpty {
        // A switch to another protocol, which the request does not ask for, has no readable head.
        if status == 101 { return nil }
        if status < 200 { continue }
        self.status = status
        return
      } else if bytes.first == 0x20 || bytes.first == 0x09 {
        // A fold belongs to the previous line and shares its destination.
        if isAfterField, let last = fields.indices.last {
          fields[last].value = Self.trimmed(fields[last].value + " " + Self.text(bytes))
        }
      } else {
        let halves = bytes.split(separator: 0x3A, maxSplits: 1, omittingEmptySubsequences: false)
        let name = halves.count == 2 && Self.isToken(halves[0]) ? Self.text(halves[0]) : ""
        let value = halves.count == 2 ? Self.text(halves[1]) : ""
        isAfterField = !name.isEmpty
        if name.isEmpty { continue }
        fields.append((name.lowercased(), value))
      }
    }
    return nil
  }

  // MARK: The rules

  /// The bytes that the body of a 206 may contain; nil if none of them may be stored.
  func storableRange(asked: Range<Int64>?) -> (range: Range<Int64>, completeLength: Int64?)? {
    guard status == 206, let asked, !hasTwoLengths else { return nil }
    if let type = values("content-type").first, type.lowercased().hasPrefix("multipart/") {
      return nil
    }
    let ranges = values("content-range")
    guard ranges.count == 1, let (range, length) = Self.contentRange(ranges[0]) else { return nil }
    guard range.contains(asked.lowerBound) else { return nil }
    if range.lowerBound < asked.lowerBound,
      range.upperBound < min(asked.upperBound, length ?? .max)
    {
      return nil
    }
    if values("transfer-encoding").isEmpty {
      // Two equal lengths have the same text, or one of them is invalid.
      let lengths = Set(values("content-length"))
      if lengths.count > 1 { return nil }
      for value in lengths {
        guard Self.number(Array(value.utf8)[...]) == range.upperBound - range.lowerBound else {
          return nil
        }
      }
    }
    return (range, length)
  }

  /// The length of the whole file if the body of a 200 may be stored as such; nil if not.
  var storableWhole: Int64?? {
    guard status == 200, !hasTwoLengths else { return nil }
    let lengths = Set(values("content-length"))
    var number: Int64?
    if let length = lengths.first {
      number = Self.number(Array(length.utf8)[...])
      if lengths.count > 1 || number == nil { return nil }
    }
    return namesPart(length: number) ? nil : .some(number)
  }

  /// Whether the body of a 200, with this length, may be a part by its range.
  private func namesPart(length: Int64?) -> Bool {
    let ranges = values("content-range")
    if ranges.isEmpty { return false }
    if ranges.count > 1 { return true }
    guard let (range, complete) = Self.contentRange(ranges[0]) else {
      return !Self.isUnsatisfied(ranges[0])
    }
    let isCoded = values("content-encoding").contains {
      !["", "identity"].contains($0.lowercased())
    }
    if range.lowerBound > 0 || complete.map({ $0 != range.upperBound }) == true { return true }
    if isCoded { return complete == nil }
    return length.map { $0 != range.upperBound } ?? (complete == nil)
  }

  /// `bytes */LENGTH`.
  private static func isUnsatisfied(_ value: String) -> Bool {
    let words = value.lowercased().split { $0 == " " || $0 == "\t" }
    guard value.utf8.count <= 1024, words.count == 2, words[0] == "bytes",
      words[1].utf8.starts(with: [0x2A, 0x2F])
    else { return false }
    return number(Array(words[1].utf8.dropFirst(2))[...]) != nil
  }

  private var hasTwoLengths: Bool {
    !values("transfer-encoding").isEmpty && !values("content-length").isEmpty
  }

  /// The values of a field, in order.
  func values(_ name: String) -> [String] {
    fields.filter { $0.name == name }.map(\.value)
  }

  // MARK: Text

  /// `bytes FIRST-LAST/LENGTH`, where LENGTH may be `*`.
  private static func contentRange(_ value: String) -> (Range<Int64>, Int64?)? {
    let bytes = Array(value.utf8)
    guard (7...1024).contains(bytes.count),
      String(decoding: bytes[..<5], as: UTF8.self).lowercased() == "bytes",
      bytes[5] == 0x20 || bytes[5] == 0x09
    else { return nil }
    let rest = bytes[6...].drop { $0 == 0x20 || $0 == 0x09 }
    guard let dash = rest.firstIndex(of: 0x2D), let slash = rest.firstIndex(of: 0x2F), dash < slash,
      let first = number(rest[..<dash]), let last = number(rest[(dash + 1)..<slash]), first <= last,
      last < 1 << 60
    else { return nil }
    if rest[(slash + 1)...].elementsEqual([0x2A]) { return (first..<(last + 1), nil) }
    guard let length = number(rest[(slash + 1)...]), last < length else { return nil }
    return (first..<(last + 1), length)
  }

  /// A number of only digits, at most 2⁶⁰.
  private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? {
    guard !bytes.isEmpty else { return nil }
    var value: Int64 = 0
    for byte in bytes {
      guard (0x30...0x39).contains(byte) else { return nil }
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      guard !overflow, product <= 1 << 60 else { return nil }
      value = product + Int64(byte - 0x30)
      if value > 1 << 60 { return nil }
    }
    return value
  }

  /// A number of only digits, capped at 2⁶⁰; nil for other text.
  static func cappedNumber(_ text: String) -> Int64? {
    let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    return isNumber ? number(Array(text.utf8)[...]) ?? 1 << 60 : nil
  }

  private static func isToken(_ bytes: ArraySlice<UInt8>) -> Bool {
    let token = Array("!#$%&'*+-.^_`|~".utf8)
    return !bytes.isEmpty
      && bytes.allSatisfy {
        (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
          || token.contains($0)
      }
  }

  /// The bytes as text, in which a space replaces each control character.
  ///
  /// No field value can contain such characters (RFC 9110 §5.5).
  private static func text(_ bytes: ArraySlice<UInt8>) -> String {
    let legal = bytes.map { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F ? 0x20 : $0 }
    return trimmed(String(decoding: legal, as: UTF8.self))
  }

  private static func trimmed(_ text: String) -> String {
    var bytes = Array(text.utf8)[...]
    while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
    while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
    return String(decoding: bytes, as: UTF8.self)
  }
}
