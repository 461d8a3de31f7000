import Dispatch
import HTTPTransfer

@testable import RemoteFiles

/// A disk under the cache that stalls: the head of the storage queue does not move until ``move()``.
final class StandingDisk {
  private let gate = DispatchSemaphore(value: 0)
  private let storage: StorageQueue
  private var hasMoved = false

  init(_ environment: MountEnvironment) {
    storage = environment.storage
    let begun = DispatchSemaphore(value: 0)
    storage.perform { [gate] in
      begun.signal()
      gate.wait()
    }
    begun.wait()
    storage.divertIfStuck(now: .now + .seconds(10))
  }

  deinit { move() }

  /// Has it move again; what was handed over to it is done when this returns.
  func move() {
    guard !hasMoved else { return }
    hasMoved = true
    gate.signal()
    storage.finish()
  }
}
