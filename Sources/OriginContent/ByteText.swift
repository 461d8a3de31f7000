/// Parsers of short texts from a client or a script; none of them traps.
enum ByteText {
  /// A count of bytes: digits with an optional suffix `k`, `m` or `g` (1024-based, either case).
  static func byteCount(_ text: some StringProtocol) -> Int64? {
    var shift: Int64 = 0
    var digits = text[...]
    switch text.last {
    case "k", "K": shift = 10
    case "m", "M": shift = 20
    case "g", "G": shift = 30
    default: break
    }
    if shift != 0 { digits.removeLast() }
    guard let number = decimal(digits) else { return nil }
    let (value, overflow) = number.multipliedReportingOverflow(by: 1 << shift)
    return overflow ? nil : value
  }

  /// One or more ASCII digits and nothing else; nil on overflow.
  static func decimal(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int64(text)
  }

  /// A range of bytes written `FIRST-LAST`, both included, with the suffixes of a count of bytes.
  static func range(_ text: some StringProtocol) -> Range<Int64>? {
    let ends = text.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = byteCount(ends[0]), let last = byteCount(ends[1]),
      first <= last, last < Int64.max
    else { return nil }
    return first..<(last + 1)
  }

  /// Decodes pairs of hexadecimal digits, with blanks and line breaks between them; nil for
  /// anything else.
  static func hexDecoded(_ text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      if byte == 0x20 || byte == 0x0A { continue }
      guard let high = hexDigit(byte), let low = rest.popFirst().flatMap(hexDigit) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  /// Decodes `%XX`; nil if a percent sign is not followed by two hexadecimal digits.
  ///
  /// A plus sign stays a plus sign.
  static func percentDecoded(_ text: some StringProtocol) -> String? {
    guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%") {
        guard let high = rest.popFirst().flatMap(hexDigit),
          let low = rest.popFirst().flatMap(hexDigit)
        else { return nil }
        bytes.append(high << 4 | low)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The text without spaces and tabs at its ends.
  static func trimmed(_ text: Substring) -> Substring {
    var text = text
    while let first = text.utf8.first, first == 0x20 || first == 0x09 { text.removeFirst() }
    while let last = text.utf8.last, last == 0x20 || last == 0x09 { text.removeLast() }
    return text
  }

  /// The value of a hexadecimal digit in ASCII; nil for another byte.
  static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
  }
}
