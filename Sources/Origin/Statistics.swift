import Synchronization

/// The counts of the origin, without requests to its control resources.
final class Statistics: Sendable {
  private let requests = Atomic<Int64>(0)
  private let active = Atomic<Int64>(0)
  private let connections = Atomic<Int64>(0)
  private let openConnections = Atomic<Int64>(0)
  private let bodyBytes = Atomic<Int64>(0)
  private let requestBodyBytes = Atomic<Int64>(0)
  private let lastConnection = Atomic<Int64>(0)
  private let lastRequest = Atomic<Int64>(0)

  /// A snapshot, as `GET /stats` shows it.
  struct Snapshot: Encodable {
    let requests: Int64
    let activeRequests: Int64
    let connections: Int64
    let openConnections: Int64
    let bodyBytesSent: Int64
    let requestBodyBytes: Int64
  }

  var snapshot: Snapshot {
    Snapshot(
      requests: requests.load(ordering: .relaxed), activeRequests: activeRequests,
      connections: connections.load(ordering: .relaxed),
      openConnections: openConnections.load(ordering: .relaxed),
      bodyBytesSent: bodyBytes.load(ordering: .relaxed),
      requestBodyBytes: requestBodyBytes.load(ordering: .relaxed))
  }

  /// Requests whose response is in flight.
  var activeRequests: Int64 { active.load(ordering: .acquiring) }

  /// Counts a connection with its first request; returns its number, from 1.
  func connectionBegan() -> Int64 {
    connections.add(1, ordering: .relaxed)
    openConnections.add(1, ordering: .relaxed)
    return lastConnection.add(1, ordering: .relaxed).newValue
  }

  func connectionEnded() { openConnections.subtract(1, ordering: .relaxed) }

  /// Counts a request; returns its number, from 1.
  func requestBegan() -> Int64 {
    active.add(1, ordering: .relaxed)
    requests.add(1, ordering: .relaxed)
    return lastRequest.add(1, ordering: .relaxed).newValue
  }

  /// Call it after the request was logged.
  func requestEnded() { active.subtract(1, ordering: .releasing) }

  func bodySent(_ byteCount: Int64) { bodyBytes.add(byteCount, ordering: .relaxed) }

  func requestBodyReceived(_ byteCount: Int64) {
    requestBodyBytes.add(byteCount, ordering: .relaxed)
  }

  /// Sets the sums to 0; numbering continues, and open requests stay counted as open.
  func clear() {
    requests.store(0, ordering: .relaxed)
    connections.store(0, ordering: .relaxed)
    bodyBytes.store(0, ordering: .relaxed)
    requestBodyBytes.store(0, ordering: .relaxed)
  }
}
