internal import Dispatch
internal import HTTPTransferCore
internal import LinuxSystem
internal import Synchronization

/// A sync of a download's file on a separate thread.
final class SyncInProgress: Sendable {
  /// The files to sync.
  let sync: PartialFile.DataSync
  private let failure = Mutex<ErrorNumber?>(nil)
  private let group = DispatchGroup()

  /// Starts the sync; nil if no thread can be created.
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
