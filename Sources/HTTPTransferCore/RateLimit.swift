internal import Synchronization

/// A limit on the body bytes per second of all requests that share it, for example those of one
/// file or of one transfer.
///
/// A new value applies from then on, also to requests in flight. A client applies it immediately if
/// it is set with the client's `setRateLimit(_:of:)`.
public final class RateLimit: Sendable {
  /// 0 for no limit.
  private let value: Atomic<Int64>

  /// - Parameter bytesPerSecond: the limit, 1 or more; nil or 0 for none.
  public init(bytesPerSecond: Int64? = nil) {
    value = Atomic(max(0, bytesPerSecond ?? 0))
  }

  /// The limit in bytes per second; nil for none.
  public var bytesPerSecond: Int64? {
    let value = value.load(ordering: .relaxed)
    return value > 0 ? value : nil
  }

  /// Sets the limit in bytes per second; nil or 0 for none.
  package func set(_ bytesPerSecond: Int64?) {
    value.store(max(0, bytesPerSecond ?? 0), ordering: .relaxed)
  }
}
