internal import HTTPTransfer

/// The values of a `Foundation.Progress` for a transfer or a queue at one moment.
///
/// The fraction is 1 only when everything has ended: all bytes may arrive long before the file is
/// verified, durable and renamed.
struct ProgressReading: Sendable, Equatable {
  /// -1 while unknown.
  var totalUnitCount: Int64
  var completedUnitCount: Int64
  var bytesPerSecond: Int
  /// In seconds; nil if unknown.
  var timeLeft: Double?
  /// For a queue: the number of all files and of those that have ended.
  var fileCounts: FileCounts?
  /// Whether nothing will change any more, unless a transfer is added to a queue.
  var isEnded: Bool

  struct FileCounts: Sendable, Equatable {
    var total: Int
    var ended: Int
  }

  /// The bytes of one transfer.
  init(_ progress: TransferProgress) {
    self.init(
      completed: progress.completedByteCount, expected: progress.expectedByteCount,
      isComplete: progress.state == .finished)
    bytesPerSecond = Int(exactly: progress.bytesPerSecond.rounded()) ?? 0
    timeLeft = progress.estimatedTimeLeft.map { $0 / .seconds(1) }
    isEnded = progress.state.isFinal
  }

  /// The transfers, or the bytes, of a queue.
  init(_ progress: QueueProgress, style: ProgressStyle) {
    let ended = progress.finishedCount + progress.failedCount + progress.cancelledCount
    let isEnded = ended == progress.transferCount
    switch style {
    case .simple:
      self.init(
        totalUnitCount: Int64(progress.transferCount), completedUnitCount: Int64(ended),
        bytesPerSecond: 0, isEnded: isEnded)
    case .accurate:
      self.init(
        completed: progress.completedByteCount, expected: progress.totalByteCount,
        isComplete: isEnded && ended > 0)
    }
    self.isEnded = isEnded
    fileCounts = FileCounts(total: progress.transferCount, ended: ended)
    bytesPerSecond = Int(exactly: progress.bytesPerSecond.rounded()) ?? 0
    if !isEnded { timeLeft = progress.estimatedTimeLeft.map { $0 / .seconds(1) } }
  }

  private init(completed: Int64, expected: Int64?, isComplete: Bool) {
    if isComplete {
      // 0 of 0 would stay indeterminate, so what is complete without a byte is 1 of 1.
      let count = max(1, completed)
      self.init(
        totalUnitCount: count, completedUnitCount: count, bytesPerSecond: 0, isEnded: true)
    } else if let expected {
      self.init(
        totalUnitCount: expected, completedUnitCount: max(0, min(completed, expected - 1)),
        bytesPerSecond: 0, isEnded: false)
    } else {
      self.init(
        totalUnitCount: -1, completedUnitCount: max(0, completed), bytesPerSecond: 0,
        isEnded: false)
    }
  }

  private init(
    totalUnitCount: Int64, completedUnitCount: Int64, bytesPerSecond: Int, isEnded: Bool
  ) {
    self.totalUnitCount = totalUnitCount
    self.completedUnitCount = completedUnitCount
    self.bytesPerSecond = bytesPerSecond
    self.isEnded = isEnded
  }
}
