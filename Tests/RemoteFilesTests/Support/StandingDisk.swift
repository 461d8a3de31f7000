import Dispatch
import HTTPTransfer

@testable import RemoteFiles

/// A stalled disk under the cache: the head of the storage queue does not move until ``move()``.
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

  /// Makes the disk work again; returns when the pending stores are done.
  func move() {
    guard !hasMoved else { return }
    hasMoved = true
    gate.signal()
    storage.finish()
  }
}
