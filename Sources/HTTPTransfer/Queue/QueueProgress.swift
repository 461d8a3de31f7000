internal import HTTPTransferCore

/// How far a queue is: by finished transfers, and by bytes, at the same time.
public struct QueueProgress: Sendable, Equatable {
  /// The transfers that were added.
  public var transferCount = 0
  public var finishedCount = 0
  public var failedCount = 0
  public var cancelledCount = 0
  /// Those that run: connect, transfer, wait to try again, or are being completed.
  public var runningCount = 0

  /// The bytes done of all transfers, in the direction that matters of each.
  public var completedByteCount: Int64 = 0

  /// What ``completedByteCount`` will be at the end; nil while one of the transfers has no total.
  ///
  /// Transfers that failed or were cancelled count with what they have brought.
  public var totalByteCount: Int64?

  /// The speed now of all, in bytes per second.
  public var bytesPerSecond: Double = 0

  /// The requests in flight.
  public var connections = 0

  /// The simple fraction: it moves once for each transfer that has ended.
  ///
  /// 0 for an empty queue.
  public var simpleFraction: Double {
    guard transferCount > 0 else { return 0 }
    return Double(finishedCount + failedCount + cancelledCount) / Double(transferCount)
  }

  /// The accurate fraction: it moves with the bytes; nil while the total is unknown.
  public var accurateFraction: Double? {
    if transferCount > 0, finishedCount + failedCount + cancelledCount == transferCount { return 1 }
    guard let total = totalByteCount else { return nil }
    guard total > 0 else { return 0 }
    return min(0.9999, Double(completedByteCount) / Double(total))
  }

  /// The time that the rest will take at the present speed; nil while that cannot be said.
  public var estimatedTimeLeft: Duration? {
    guard let total = totalByteCount, bytesPerSecond > 0 else { return nil }
    return .seconds(Double(max(0, total - max(0, completedByteCount))) / bytesPerSecond)
  }

  /// The progress of an empty queue.
  public init() {}

  mutating func add(_ progress: TransferProgress, knownTotal: Int64?) {
    transferCount += 1
    completedByteCount = completedByteCount.saturatingSum(progress.completedByteCount)
    bytesPerSecond += progress.bytesPerSecond
    connections += progress.connections
    var expected = progress.expectedByteCount ?? knownTotal
    switch progress.state {
    case .finished:
      finishedCount += 1
      expected = progress.completedByteCount
    case .failed:
      failedCount += 1
      expected = progress.completedByteCount
    case .cancelled:
      cancelledCount += 1
      expected = progress.completedByteCount
    case .connecting, .running, .waiting, .finishing: runningCount += 1
    case .queued, .paused: break
    }
    if let sum = totalByteCount, let expected {
      totalByteCount = sum.saturatingSum(expected)
    } else {
      totalByteCount = nil
    }
  }
}

/// Something that happened to a queue.
public struct QueueEvent: Sendable {
  /// The event's place in its sequence: 0, 1, 2, … without a gap.
  public let number: Int

  public let kind: Kind

  public enum Kind: Sendable {
    case added(TransferID)
    case started(TransferID)
    case finished(TransferID, TransferResult)
    case failed(TransferID, TransferError)
    /// Everything that was added has ended; more can be added.
    case queueFinished
  }
}

/// The events of one queue, for one listener, from the moment at which it was made.
public struct QueueEvents: AsyncSequence, Sendable {
  public typealias Element = QueueEvent
  public typealias Failure = Never

  let buffer: EventBuffer<QueueEvent.Kind>

  /// Takes the events one by one; there is one iterator for each sequence.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let buffer: EventBuffer<QueueEvent.Kind>

    /// The next event, when there is one; nil when the task is cancelled or the queue is gone.
    public mutating func next() async -> QueueEvent? {
      await buffer.next().map { QueueEvent(number: $0.number, kind: $0.kind) }
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(buffer: buffer) }
}
