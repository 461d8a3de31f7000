import TextFormat

/// The summary of a download or upload.
package enum SummaryText {
  /// The lines of the summary.
  ///
  /// `3 files finished, 1.5 GiB in 12.3s (124.9 MiB/s)`; the bytes and the mean speed are those of
  /// this run.
  ///
  /// - Parameter snapshot: the files at the end.
  /// - Returns: one line, and one more for each file that failed.
  package static func lines(for snapshot: DisplaySnapshot) -> [DisplayLine] {
    let totals = snapshot.totals
    let unfinishedCount = totals.pausedCount + totals.queuedCount + totals.activeCount
    var parts = ["\(counted(totals.finishedCount, "file")) finished"]
    if totals.unchangedCount > 0 { parts.append("\(totals.unchangedCount) of them unchanged") }
    if totals.failedCount > 0 { parts.append("\(totals.failedCount) failed") }
    if totals.cancelledCount > 0 { parts.append("\(totals.cancelledCount) cancelled") }
    if unfinishedCount > 0 { parts.append("\(unfinishedCount) not finished") }
    parts.append(
      transferText(
        byteCount: totals.newByteCount, newByteCount: totals.newByteCount,
        seconds: snapshot.elapsed))
    if totals.resumedByteCount > 0 {
      parts.append("\(humanBytes(totals.resumedByteCount)) of an earlier run")
    }
    let tone: DisplayLine.Tone =
      totals.failedCount > 0
      ? .failed : totals.finishedCount == totals.itemCount ? .finished : .normal
    let failures = snapshot.items.compactMap { item -> DisplayLine? in
      if case .failed = item.state { item.outcome } else { nil }
    }
    return [DisplayLine(parts.joined(separator: ", "), tone: tone)] + failures
  }
}
