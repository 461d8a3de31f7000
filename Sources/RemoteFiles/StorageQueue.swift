internal import Dispatch
internal import HTTPTransfer
internal import Synchronization

/// Runs what writes to cache files and appends to their records: one thing at a time, in the order in which it
/// was handed over, on a thread that may wait for the disk.
///
/// The network thread hands over what it has gathered and goes on; when too much waits for the disk, exchanges
/// pause.
final class StorageQueue: Sendable {
  /// How many buffers may wait to be stored: enough for the disk to have work while one is filled, and
  /// little memory.
  private static let bufferLimit = 8

  private let queue = DispatchQueue(label: "httpfs.storage")
  private let client: HTTPClient

  private struct State {
    var bufferCount = 0
    /// The exchanges that go on when there is room.
    var paused: [ExchangeID] = []
    var fullSince: ContinuousClock.Instant?
    var fullTime = Duration.zero
  }

  private let state = Mutex(State())

  init(client: HTTPClient) { self.client = client }

  /// Runs `work` after all that was handed over before.
  func perform(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }

  /// Runs `work`, which stores what a buffer holds, after all that was handed over before.
  func store(_ work: @escaping @Sendable () -> Void) {
    state.withLock { $0.bufferCount += 1 }
    queue.async { [self] in
      work()
      stored()
    }
  }

  private func stored() {
    let resumed = state.withLock { state -> [ExchangeID] in
      state.bufferCount -= 1
      guard let since = state.fullSince, state.bufferCount <= Self.bufferLimit / 2 else {
        return []
      }
      state.fullTime += ContinuousClock.now - since
      state.fullSince = nil
      defer { state.paused = [] }
      return state.paused
    }
    for transfer in resumed { client.unpause(transfer) }
  }

  /// Whether more may be handed over; if not, `transfer` is to pause, and goes on when there is room.
  func hasRoom(for transfer: ExchangeID) -> Bool {
    state.withLock { state in
      // Once it is full nobody is let in before those who have paused.
      guard state.fullSince != nil || state.bufferCount >= Self.bufferLimit else { return true }
      state.fullSince = state.fullSince ?? .now
      state.paused.append(transfer)
      return false
    }
  }

  /// For how long exchanges have been paused so far, in seconds.
  var fullSeconds: Double {
    state.withLock { state in
      let current = state.fullSince.map { ContinuousClock.now - $0 } ?? .zero
      return (state.fullTime + current) / .seconds(1)
    }
  }

  /// Runs `work` after all that was handed over before, and returns then; for the end of a mount.
  func finish(_ work: () -> Void = {}) { queue.sync(execute: work) }
}
