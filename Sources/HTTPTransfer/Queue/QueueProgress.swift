internal import HTTPTransferCore

/// The progress of a queue, both by finished transfers and by bytes.
public struct QueueProgress: Sendable, Equatable {
  /// The transfers that were added.
  public var transferCount = 0
  public var finishedCount = 0
  public var failedCount = 0
  public var cancelledCount = 0
  /// The transfers that connect, transfer, wait for a retry, or are being completed.
  public var runningCount = 0

  /// The bytes done of all transfers, in the relevant direction of each.
  public var completedByteCount: Int64 = 0

  /// The final value of ``completedByteCount``; nil while a transfer has no total.
  ///
  /// Transfers that failed or were cancelled count with their completed bytes.
  public var totalByteCount: Int64?

  /// The current speed of all transfers, in bytes per second.
  public var bytesPerSecond: Double = 0

  /// The requests in flight.
  public var connections = 0

  /// The simple fraction: it advances once for each transfer that ends.
  ///
  /// 0 for an empty queue.
  public var simpleFraction: Double {
    guard transferCount > 0 else { return 0 }
    return Double(finishedCount + failedCount + cancelledCount) / Double(transferCount)
  }

  /// The accurate fraction: it advances with the bytes; nil while the total is unknown.
  public var accurateFraction: Double? {
    if transferCount > 0, finishedCount + failedCount + cancelledCount == transferCount { return 1 }
    guard let total = totalByteCount else { return nil }
    guard total > 0 else { return 0 }
    return min(0.9999, Double(completedByteCount) / Double(total))
  }

  /// The time that the rest will take at the current speed; nil while unknown.
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

/// An event of a queue.
public struct QueueEvent: Sendable {
  /// The event's place in its sequence: 0, 1, 2, … without a gap.
  public let number: Int

  public let kind: Kind

  public enum Kind: Sendable {
    case added(TransferID)
    case started(TransferID)
    case finished(TransferID, TransferResult)
    case failed(TransferID, TransferError)
    /// All added transfers have ended; more can be added.
    case queueFinished
  }
}

/// The events of one queue, for one listener, from the creation of the sequence on.
public struct QueueEvents: AsyncSequence, Sendable {
  public typealias Element = QueueEvent
  public typealias Failure = Never

  let buffer: EventBuffer<QueueEvent.Kind>

  /// Returns the events one by one; each sequence has one iterator.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let buffer: EventBuffer<QueueEvent.Kind>

    /// Waits for the next event; nil when the task is cancelled or the queue no longer exists.
    public mutating func next() async -> QueueEvent? {
      await buffer.next().map { QueueEvent(number: $0.number, kind: $0.kind) }
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(buffer: buffer) }
}
