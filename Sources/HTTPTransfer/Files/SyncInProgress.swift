internal import Dispatch
internal import HTTPTransferCore
internal import LinuxSystem
internal import Synchronization

/// A sync of a download's file, which a thread of its own waits for.
final class SyncInProgress: Sendable {
  /// What is being synced.
  let sync: PartialFile.DataSync
  private let failure = Mutex<ErrorNumber?>(nil)
  private let group = DispatchGroup()

  /// Begins; nil if there is no thread to spare.
  init?(_ sync: PartialFile.DataSync) {
    self.sync = sync
    group.enter()
    let isStarted = spawnThread(name: "httpfs-sync") { [self] in
      do throws(ErrorNumber) {
        try sync.run()
      } catch {
        failure.withLock { $0 = error }
      }
      group.leave()
    }
    if !isStarted {
      group.leave()
      return nil
    }
  }

  /// Whether it has ended.
  var isOver: Bool { group.wait(timeout: .now()) == .success }

  /// Waits for the end.
  ///
  /// - Returns: why it failed; nil if everything is on the disk.
  func wait() -> ErrorNumber? {
    group.wait()
    return failure.withLock { $0 }
  }
}
