import TextFormat

extension DisplayItem {
  /// The result of the file, as one line with its name; nil while it has not ended.
  ///
  /// `big.iso: 1 GiB in 10.9s (98.2 MiB/s)`, `big.iso: failed: HTTP 404`.
  package var outcome: DisplayLine? {
    switch state {
    case .finished: line(finishedText, tone: .finished)
    case .failed(let reason): line("failed: \(reason)", tone: .failed)
    case .cancelled: line("cancelled" + positionText)
    case .queued, .connecting, .running, .waiting, .paused: nil
    }
  }

  /// A line about this item, which begins with its name.
  func line(_ text: String, tone: DisplayLine.Tone = .normal) -> DisplayLine {
    DisplayLine("\(name): \(text)", tone: tone)
  }

  /// `1 GiB in 10.9s (98.2 MiB/s), resumed at 440 MiB`.
  var finishedText: String {
    let size = humanBytes(transferredByteCount)
    if isUnchanged { return "\(size), unchanged since it was downloaded" }
    if newByteCount == 0 && resumedByteCount > 0 { return "\(size), nothing left to transfer" }
    let text = transferText(
      byteCount: transferredByteCount, newByteCount: newByteCount, seconds: elapsed)
    return resumedByteCount > 0 ? "\(text), resumed at \(humanBytes(resumedByteCount))" : text
  }

  /// ` at 440 MiB of 1 GiB`, ` at 440 MiB`; empty without bytes.
  var positionText: String {
    guard transferredByteCount > 0 else { return "" }
    let total = totalByteCount.map { " of \(humanBytes($0))" } ?? ""
    return " at \(humanBytes(transferredByteCount))\(total)"
  }
}
