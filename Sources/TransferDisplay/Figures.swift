import MountStatus

/// A speed for people: `98.2 MiB/s`.
func humanSpeed(_ bytesPerSecond: Double) -> String {
  // Far above any line, and below what an Int64 holds.
  let clamped = bytesPerSecond.isNaN ? 0 : min(1e18, max(0, bytesPerSecond))
  return humanBytes(Int64(clamped)) + "/s"
}

/// A time that has passed, for people: `10.9s`, `3m05s`, `2h07m`.
func humanElapsed(_ seconds: Double) -> String {
  // 59.96 would be shown as 60.0s.
  guard seconds >= 59.95 else {
    return decimal(max(0, seconds), fractionDigitCount: 1) + "s"
  }
  return humanDuration(seconds: seconds.rounded())
}

/// What was transferred, in how long, how fast: `1 GiB in 10.9s (98.2 MiB/s)`.
///
/// - Parameters:
///   - byteCount: the bytes to be named.
///   - newByteCount: those of them that this run transferred, which make the speed.
///   - seconds: the time that it took.
/// - Returns: the text; without the speed where there is none to tell.
func transferText(byteCount: Int64, newByteCount: Int64, seconds: Double) -> String {
  let text = "\(humanBytes(byteCount)) in \(humanElapsed(seconds))"
  // The mean over less than a millisecond says nothing.
  guard seconds >= 0.001, newByteCount > 0 else { return text }
  return "\(text) (\(humanSpeed(Double(newByteCount) / seconds)))"
}
