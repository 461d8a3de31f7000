import TextFormat

/// The sums over all files of a download or upload.
package struct DisplayTotals: Sendable, Equatable {
  package private(set) var finishedCount = 0
  /// The number of files that already existed unchanged.
  package private(set) var unchangedCount = 0
  package private(set) var failedCount = 0
  package private(set) var cancelledCount = 0
  package private(set) var pausedCount = 0
  package private(set) var queuedCount = 0

  /// The number of files that are connecting, running, or waiting to continue.
  package private(set) var activeCount = 0

  /// The bytes that have arrived, including those of earlier runs.
  package private(set) var transferredByteCount: Int64 = 0

  /// The bytes of earlier runs, which were not transferred again.
  package private(set) var resumedByteCount: Int64 = 0

  /// The bytes that this run transferred.
  package private(set) var newByteCount: Int64 = 0

  /// The length of all files together; nil while the length of any pending file is unknown.
  ///
  /// A file that ended with an unknown length counts with the bytes that it has.
  package private(set) var totalByteCount: Int64? = 0

  /// The speed of all files together.
  package private(set) var bytesPerSecond = 0.0

  /// The bytes until everything that is not paused has ended; nil while a length is unknown.
  private var remaining: Int64? = 0

  /// The expected seconds until everything that is not paused has ended; nil when unknown.
  package var timeLeft: Double? {
    guard let remaining, activeCount > 0, bytesPerSecond > 0 else { return nil }
    return Double(remaining) / bytesPerSecond
  }

  package private(set) var connections = 0

  /// The number of files that have ended.
  package var settledCount: Int { finishedCount + failedCount + cancelledCount }

  /// The number of all files.
  package var itemCount: Int { settledCount + pausedCount + queuedCount + activeCount }

  /// How much is done, 0 to 100, rounded down; 100 only when all are finished.
  ///
  /// While a length is unknown, it is the mean of the percentages of the files, of which a file of
  /// unknown length has none.
  package var percent: Int? {
    if finishedCount == itemCount { return 100 }
    guard let totalByteCount else { return min(99, percentSum / max(1, itemCount)) }
    return unfinishedPercentage(of: transferredByteCount, in: totalByteCount)
  }

  private var percentSum = 0

  /// The sums over no file.
  package init() {}

  /// Adds a file.
  package mutating func add(_ item: DisplayItem) {
    count(item.state)
    percentSum += item.state == .finished ? 100 : item.percent ?? 0
    if item.isUnchanged { unchangedCount += 1 }
    transferredByteCount = saturatingSum(transferredByteCount, item.transferredByteCount)
    resumedByteCount = saturatingSum(resumedByteCount, item.resumedByteCount)
    newByteCount = saturatingSum(newByteCount, item.newByteCount)
    bytesPerSecond += item.bytesPerSecond
    connections += item.connections

    let length = item.totalByteCount ?? (item.state.isSettled ? item.transferredByteCount : nil)
    totalByteCount = saturatingSum(totalByteCount, length)
    if !item.state.isSettled && item.state != .paused {
      let rest = length.map { max(0, saturatingSum($0, -max(0, item.transferredByteCount))) }
      remaining = saturatingSum(remaining, rest)
    }
  }

  /// Adds files that wait and of which nothing is known.
  package mutating func addQueued(_ count: Int) {
    guard count > 0 else { return }
    queuedCount += count
    totalByteCount = nil
    remaining = nil
  }

  private mutating func count(_ state: DisplayItem.State) {
    switch state {
    case .finished: finishedCount += 1
    case .failed: failedCount += 1
    case .cancelled: cancelledCount += 1
    case .paused: pausedCount += 1
    case .queued: queuedCount += 1
    case .connecting, .running, .waiting: activeCount += 1
    }
  }
}

/// The sum, or the nearest integer to it, because servers may report any length.
private func saturatingSum(_ first: Int64, _ second: Int64) -> Int64 {
  let (sum, overflows) = first.addingReportingOverflow(second)
  guard overflows else { return sum }
  return first < 0 ? .min : .max
}

private func saturatingSum(_ first: Int64?, _ second: Int64?) -> Int64? {
  guard let first, let second else { return nil }
  return saturatingSum(first, second)
}

/// The percentage that `part` is of `whole`, 0 to 99.
///
/// All bytes may have arrived before the file is finished (checksum, rename), and a body may be
/// longer than announced.
func unfinishedPercentage(of part: Int64, in whole: Int64) -> Int {
  whole > 0 ? min(99, percentage(of: part, in: whole)) : 0
}
