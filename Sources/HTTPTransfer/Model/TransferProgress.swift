/// How far a transfer is.
public struct TransferProgress: Sendable, Equatable {
  /// Where in its life a transfer is.
  public enum State: String, Sendable {
    /// Made, or in a queue, and not started.
    case queued
    /// Started; no response yet.
    case connecting
    case running
    /// Waits to try again after a failure.
    case waiting
    case paused
    /// All bytes are there and are being checked and made durable.
    case finishing
    case finished
    case failed
    case cancelled

    /// Whether nothing more will happen.
    public var isFinal: Bool { self == .finished || self == .failed || self == .cancelled }
  }

  public var state = State.queued

  /// The bytes at the destination, those of earlier runs included.
  public var receivedByteCount: Int64 = 0

  /// Those of them that an earlier run had brought.
  public var resumedByteCount: Int64 = 0

  /// The bytes of the request's body that were sent.
  public var sentByteCount: Int64 = 0

  /// What ``receivedByteCount`` will be at the end; nil while unknown.
  public var totalByteCount: Int64?

  /// What ``sentByteCount`` will be at the end; nil while unknown, 0 without a body.
  public var bodyByteCount: Int64? = 0

  /// The speed now, both directions together, in bytes per second: a moving average that bytes of
  /// an earlier run do not touch.
  public var bytesPerSecond: Double = 0

  /// The speed since the start, in bytes per second.
  public var averageBytesPerSecond: Double = 0

  /// The time since the start.
  public var elapsed: Duration = .zero

  /// The requests in flight.
  public var connections = 0

  /// How often something was tried again.
  public var retryCount = 0

  /// What the transfer waits for or has failed of, in one line.
  public var reason: String?

  /// The value before anything has happened.
  public init() {}

  /// The bytes done in the direction that matters: sent for a request with a body, received
  /// otherwise.
  public var completedByteCount: Int64 { isUpload ? sentByteCount : receivedByteCount }

  /// What ``completedByteCount`` will be at the end; nil while unknown.
  public var expectedByteCount: Int64? { isUpload ? bodyByteCount : totalByteCount }

  private var isUpload: Bool { bodyByteCount != 0 }

  /// The part that is done, 0 to 1; nil while the total is unknown, and 1 only when finished.
  public var fractionCompleted: Double? {
    if state == .finished { return 1 }
    guard let expected = expectedByteCount else { return nil }
    guard expected > 0 else { return 0 }
    return min(0.9999, max(0, Double(completedByteCount) / Double(expected)))
  }

  /// The time that the rest will take at the present speed; nil while that cannot be said.
  public var estimatedTimeLeft: Duration? {
    guard !state.isFinal, let expected = expectedByteCount, bytesPerSecond > 0 else { return nil }
    return .seconds(Double(max(0, expected - completedByteCount)) / bytesPerSecond)
  }
}

/// Something that shows progress.
///
/// It is called in order, on a task of its own: one that is slow sees fewer values, and never slows a
/// transfer. The last value that it sees is the final one.
public protocol ProgressSink: Sendable {
  func progressChanged(_ progress: TransferProgress) async
}
