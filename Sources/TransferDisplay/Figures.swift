import TextFormat

/// A speed for people: `98.2 MiB/s`.
func humanSpeed(_ bytesPerSecond: Double) -> String {
  // Far above any real speed, and below the maximum of Int64.
  let clamped = bytesPerSecond.isNaN ? 0 : min(1e18, max(0, bytesPerSecond))
  return humanBytes(Int64(clamped)) + "/s"
}

/// An elapsed time for people: `10.9s`, `3m05s`, `2h07m`.
func humanElapsed(_ seconds: Double) -> String {
  // 59.96 would be shown as 60.0s.
  guard seconds >= 59.95 else {
    return decimal(max(0, seconds), fractionDigitCount: 1) + "s"
  }
  return humanDuration(seconds: seconds.rounded())
}

/// The amount, time and speed of a transfer: `1 GiB in 10.9s (98.2 MiB/s)`.
///
/// - Parameters:
///   - byteCount: the bytes to show.
///   - newByteCount: the bytes that this run transferred; they determine the speed.
///   - seconds: the time of the transfer.
/// - Returns: the text, without the speed if it is unknown.
func transferText(byteCount: Int64, newByteCount: Int64, seconds: Double) -> String {
  let text = "\(humanBytes(byteCount)) in \(humanElapsed(seconds))"
  // A mean over less than a millisecond is meaningless.
  guard seconds >= 0.001, newByteCount > 0 else { return text }
  return "\(text) (\(humanSpeed(Double(newByteCount) / seconds)))"
}
