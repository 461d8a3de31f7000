/// Parses a byte count: a decimal number, optionally followed by a unit.
///
/// `K`, `M`, `G`, `T` and `KiB`, `MiB`, … are powers of 1024, `KB`, `MB`, … powers of 1000, and `B`
/// is a byte, as in GNU's tools; in either case. Before a unit, the number may have a fraction,
/// which is rounded down to a byte: `1.5M`.
///
/// - Returns: nil for any other text, and for a number beyond `Int64`.
package func byteCount(ofText text: String) -> Int64? {
  var digits = Array(text.utf8)[...]
  var base: Int64 = 1024
  if let last = digits.last, last | 0x20 == UInt8(ascii: "b") {
    digits = digits.dropLast()
    if let last = digits.last, last | 0x20 == UInt8(ascii: "i") {
      digits = digits.dropLast()
      guard let unit = digits.last, "kmgt".utf8.contains(unit | 0x20) else { return nil }
    } else {
      base = 1000
    }
  }
  var unit: Int64 = 1
  if let last = digits.last,
    let power = "kmgt".utf8.enumerated().first(where: { $1 == last | 0x20 })
  {
    digits = digits.dropLast()
    for _ in 0...power.offset { unit *= base }
  }
  let parts = digits.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
  guard parts.count == 1 || parts.count == 2 && unit > 1 && parts[1].count <= 6,
    let number = number(ofDigits: parts[0])
  else { return nil }
  var fraction: Int64 = 0
  if parts.count == 2 {
    guard let numerator = HTTPTransferCore.number(ofDigits: parts[1]) else { return nil }
    var denominator: Int64 = 1
    for _ in parts[1] { denominator *= 10 }
    // Below 10^6 * 2^40, which Int64 holds.
    fraction = numerator * unit / denominator
  }
  let (product, overflow) = number.multipliedReportingOverflow(by: unit)
  let (sum, sumOverflow) = product.addingReportingOverflow(fraction)
  return overflow || sumOverflow ? nil : sum
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
