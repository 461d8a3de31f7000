/// Parses a byte count: decimal digits, optionally followed by K, M, G or T (powers of 1024).
///
/// The suffix may be in either case. Returns nil for any other text and for a number beyond
/// `Int64`.
package func byteCount(ofText text: String) -> Int64? {
  var digits = text.utf8[...]
  var shift: Int64 = 0
  if let last = digits.last,
    let power = "kmgt".utf8.enumerated().first(where: { $1 == last | 0x20 })
  {
    digits = digits.dropLast()
    shift = 10 * Int64(power.offset + 1)
  }
  guard let number = number(ofDigits: digits) else { return nil }
  let (product, overflow) = number.multipliedReportingOverflow(by: 1 << shift)
  return overflow ? nil : product
}

/// Parses a rate in bytes per second: a ``byteCount(ofText:)``, optionally followed by `/s`.
///
/// 0 means no limit; nil means that the text is not such a number.
package func bytesPerSecond(ofText text: String) -> Int64? {
  byteCount(ofText: text.hasSuffix("/s") ? String(text.dropLast(2)) : text)
}

/// Parses decimal digits without a sign; returns nil for anything else.
package func number(ofDigits digits: some Collection<UInt8>) -> Int64? {
  guard !digits.isEmpty else { return nil }
  var number: Int64 = 0
  for digit in digits {
    guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
    let (tens, isTooGreat) = number.multipliedReportingOverflow(by: 10)
    let (sum, overflow) = tens.addingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
    if isTooGreat || overflow { return nil }
    number = sum
  }
  return number
}
