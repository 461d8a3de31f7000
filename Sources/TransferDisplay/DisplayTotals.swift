import MountStatus

/// The sums over all files of a download or upload.
package struct DisplayTotals: Sendable, Equatable {
  package private(set) var finishedCount = 0
  /// Those of them that were there already.
  package private(set) var unchangedCount = 0
  package private(set) var failedCount = 0
  package private(set) var cancelledCount = 0
  package private(set) var pausedCount = 0
  package private(set) var queuedCount = 0

  /// The number of files that are connecting, running, or waiting to go on by themselves.
  package private(set) var activeCount = 0

  /// The bytes that are there, with those of earlier runs.
  package private(set) var transferredByteCount: Int64 = 0

  /// The bytes of earlier runs, which were not transferred again.
  package private(set) var resumedByteCount: Int64 = 0

  /// The bytes that this run transferred.
  package private(set) var newByteCount: Int64 = 0

  /// The length of all files together; nil while the length of any that may still come is unknown.
  ///
  /// What ended without its length ever being known counts with the bytes that it has.
  package private(set) var totalByteCount: Int64? = 0

  /// The speed of all files together.
  package private(set) var bytesPerSecond = 0.0

  /// The expected seconds until all that is not paused has ended; nil when unknown.
  package private(set) var timeLeft: Double?

  package private(set) var connections = 0

  /// The number of all files.
  package var itemCount: Int {
    finishedCount + failedCount + cancelledCount + pausedCount + queuedCount + activeCount
  }

  /// How much is done, 0 to 100, rounded down; 100 only when all are finished, nil if unknown.
  package var percent: Int? {
    if finishedCount == itemCount { return 100 }
    return totalByteCount.map { unfinishedPercentage(of: transferredByteCount, in: $0) }
  }

  init(of items: [DisplayItem]) {
    var remaining: Int64? = 0
    for item in items {
      count(item.state)
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
    if let remaining, activeCount > 0, bytesPerSecond > 0 {
      timeLeft = Double(remaining) / bytesPerSecond
    }
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

/// The sum, or the nearest integer to it: lengths come from servers, which may tell anything.
private func saturatingSum(_ first: Int64, _ second: Int64) -> Int64 {
  let (sum, overflows) = first.addingReportingOverflow(second)
  guard overflows else { return sum }
  return first < 0 ? .min : .max
}

private func saturatingSum(_ first: Int64?, _ second: Int64?) -> Int64? {
  guard let first, let second else { return nil }
  return saturatingSum(first, second)
}

/// How much `part` is of `whole`, 0 to 99: all bytes may be there before the file is finished
/// (checksum, rename), and a body may be longer than was announced.
func unfinishedPercentage(of part: Int64, in whole: Int64) -> Int {
  whole > 0 ? min(99, percentage(of: part, in: whole)) : 0
}
