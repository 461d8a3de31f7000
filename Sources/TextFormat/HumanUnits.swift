/// Formats `value` in decimal with exactly `fractionDigitCount` digits after the point (1 to 3),
/// rounded.
///
/// Values beyond 10¹⁵ and values that are not finite are clamped.
package func decimal(_ value: Double, fractionDigitCount: Int) -> String {
  let scale: Int64 = [1, 10, 100, 1000][min(3, max(0, fractionDigitCount))]
  let limit = 1e15
  let clamped = value.isNaN ? 0 : min(limit, max(-limit, value))
  let scaled = Int64((clamped * Double(scale)).rounded())
  let fraction = String(abs(scaled % scale))
  let zeros = String(repeating: "0", count: max(0, fractionDigitCount - fraction.utf8.count))
  return "\(scaled < 0 ? "-" : "")\(abs(scaled / scale)).\(zeros)\(fraction)"
}

/// Formats a number of bytes for people, in binary units: `512 B`, `128 KiB`, `5.2 MiB`.
package func humanBytes(_ byteCount: Int64) -> String {
  guard byteCount >= 1024 else { return "\(byteCount) B" }
  // 1023.96 would be shown as 1024.0.
  let (value, prefix) = scaled(byteCount, below: 1023.95)
  return shortDecimal(value) + " " + prefix + "iB"
}

/// Formats a number of bytes in at most five columns, in binary units: `512B`, `5.2M`, `1023G`.
package func shortBytes(_ byteCount: Int64) -> String {
  guard byteCount >= 1024 else { return "\(byteCount)B" }
  // 1023.5 would be shown as 1024.
  let (value, prefix) = scaled(byteCount, below: 1023.5)
  return (value < 99.95 ? shortDecimal(value) : "\(Int64(value.rounded()))") + prefix
}

/// A number of at least 1024 bytes in the binary unit in which it is below `limit`.
private func scaled(_ byteCount: Int64, below limit: Double) -> (value: Double, prefix: String) {
  var value = Double(byteCount)
  var prefix = ""
  for next in ["K", "M", "G", "T", "P", "E"] {
    value /= 1024
    prefix = next
    if value < limit { break }
  }
  return (value, prefix)
}

/// One digit after the point; none for round numbers, which are common (read sizes, offsets).
private func shortDecimal(_ value: Double) -> String {
  let text = decimal(value, fractionDigitCount: 1)
  return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
}

/// Formats a remaining time for people: `42s`, `3m05s`, `2h07m`, `4d03h`.
package func humanDuration(seconds: Double) -> String {
  guard seconds.isFinite else { return "-" }
  let total = Int64(min(1e12, max(0, seconds)).rounded(.up))
  func pair(_ first: Int64, _ firstUnit: String, _ second: Int64, _ secondUnit: String) -> String {
    "\(first)\(firstUnit)\(second < 10 ? "0" : "")\(second)\(secondUnit)"
  }
  switch total {
  case ..<60: return "\(total)s"
  case ..<3600: return pair(total / 60, "m", total % 60, "s")
  case ..<86400: return pair(total / 3600, "h", total / 60 % 60, "m")
  default: return pair(total / 86400, "d", total / 3600 % 24, "h")
  }
}

/// The percentage that `part` is of `whole`, rounded down; 100 only if nothing is missing.
package func percentage(of part: Int64, in whole: Int64) -> Int {
  guard part < whole else { return 100 }
  return Int(min(99, max(0, Double(part) / Double(whole) * 100)))
}

/// The percentage as text: `<1%` for a part that is too small to count, so that `0%` means nothing.
package func percentText(of part: Int64, in whole: Int64) -> String {
  let percent = percentage(of: part, in: whole)
  return percent == 0 && part > 0 ? "<1%" : "\(percent)%"
}

/// A speed, such as `5.2 MiB/s`; `-` if no bytes flow.
package func speedText(bytesPerSecond: Int64) -> String {
  bytesPerSecond > 0 ? humanBytes(bytesPerSecond) + "/s" : "-"
}

/// `1 file`, `2 files`.
package func counted(_ count: Int, _ noun: String) -> String {
  "\(count) \(noun)\(count == 1 ? "" : "s")"
}
