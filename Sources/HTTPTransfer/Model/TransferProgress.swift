/// The progress of a transfer.
public struct TransferProgress: Sendable, Equatable {
  /// The stages of a transfer.
  public enum State: String, Sendable {
    /// Created, or in a queue, and not started.
    case queued
    /// Started; no response yet.
    case connecting
    case running
    /// Waiting for a retry after a failure.
    case waiting
    case paused
    /// All bytes are present and are being verified and synced.
    case finishing
    case finished
    case failed
    case cancelled

    /// Whether the state will not change any more.
    public var isFinal: Bool { self == .finished || self == .failed || self == .cancelled }
  }

  public var state = State.queued

  /// The bytes at the destination, including those of earlier runs.
  public var receivedByteCount: Int64 = 0

  /// How many of these bytes an earlier run had fetched.
  public var resumedByteCount: Int64 = 0

  /// The bytes of the request's body that were sent.
  public var sentByteCount: Int64 = 0

  /// The final value of ``receivedByteCount``; nil while unknown.
  public var totalByteCount: Int64?

  /// The final value of ``sentByteCount``; nil while unknown, 0 without a body.
  public var bodyByteCount: Int64? = 0

  /// The current speed of both directions together, in bytes per second: a moving average that does
  /// not count bytes of an earlier run.
  public var bytesPerSecond: Double = 0

  /// The speed since the start, in bytes per second.
  public var averageBytesPerSecond: Double = 0

  /// The time since the start.
  public var elapsed: Duration = .zero

  /// The requests in flight.
  public var connections = 0

  /// The number of retries.
  public var retryCount = 0

  /// What the transfer waits for, or why it failed, in one line.
  public var reason: String?

  /// The progress before the start.
  public init() {}

  /// The bytes done in the relevant direction: sent for a request with a body, otherwise received.
  public var completedByteCount: Int64 { isUpload ? sentByteCount : receivedByteCount }

  /// The final value of ``completedByteCount``; nil while unknown.
  public var expectedByteCount: Int64? { isUpload ? bodyByteCount : totalByteCount }

  private var isUpload: Bool { bodyByteCount != 0 }

  /// The completed fraction, 0 to 1; nil while the total is unknown, and 1 only when finished.
  public var fractionCompleted: Double? {
    if state == .finished { return 1 }
    guard let expected = expectedByteCount else { return nil }
    guard expected > 0 else { return 0 }
    return min(0.9999, max(0, Double(completedByteCount) / Double(expected)))
  }

  /// The time that the rest will take at the current speed; nil while unknown.
  public var estimatedTimeLeft: Duration? {
    guard !state.isFinal, let expected = expectedByteCount, bytesPerSecond > 0 else { return nil }
    return .seconds(Double(max(0, expected - completedByteCount)) / bytesPerSecond)
  }
}

/// A receiver of progress.
///
/// It is called in order, on its own task. A slow sink gets fewer values and never slows a
/// transfer. Its last value is the final one.
public protocol ProgressSink: Sendable {
  func progressChanged(_ progress: TransferProgress) async
}
