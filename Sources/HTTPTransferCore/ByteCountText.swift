/// The number of bytes that `text` says: decimal digits, then perhaps K, M, G or T, in either case,
/// for the powers of 1024; nil where it is no such number, or beyond `Int64`.
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

/// The bytes per second that `text` says: as ``byteCount(ofText:)`` has it, and `/s` may follow; 0 means
/// no limit, nil that it is no such number.
package func bytesPerSecond(ofText text: String) -> Int64? {
  byteCount(ofText: text.hasSuffix("/s") ? String(text.dropLast(2)) : text)
}

/// The number that decimal digits make, without sign; nil for anything else.
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
