import ExtentRecord
import Glibc
import HTTPTransferCore
import LinuxSystem
import Synchronization

/// The blocks of data files that hold no present bytes; see ``DataBlocks``.
final class BlockTable: Sendable {
  private let state = Mutex(State())

  private struct State {
    /// The blocks of each data file that an entry object has open, by the file's identity.
    var open: [UInt64: DataBlocks] = [:]
    /// Data files with settled blocks that no entry object has open.
    var settled: Set<UInt64> = []
  }

  private static let maximumSettledCount = 65_536

  /// Counts an entry object that has opened the data file `dataID`.
  func beginUse(of dataID: UInt64, isNew: Bool) {
    state.withLock { state in
      let isSettled = isNew || state.settled.contains(dataID)
      state.open[dataID, default: DataBlocks(isSettled: isSettled)].beginUse()
    }
  }

  /// Ends that count; `isSynced` says whether all its writes are known to be on the disk.
  func endUse(of dataID: UInt64, isSynced: Bool) {
    state.withLock { state in
      state.open[dataID]?.endUse(isSynced: isSynced)
      guard let blocks = state.open[dataID], blocks.isUnused else { return }
      state.open[dataID] = nil
      // Data files that are dropped from the set are settled again.
      if state.settled.count >= Self.maximumSettledCount { state.settled = [] }
      if blocks.isSettled {
        state.settled.insert(dataID)
      } else {
        state.settled.remove(dataID)
      }
    }
  }

  /// Whether this process knows that none of its writes to the data file `dataID` was lost.
  func isSettled(_ dataID: UInt64) -> Bool {
    state.withLock { $0.open[dataID]?.isSettled ?? $0.settled.contains(dataID) }
  }

  func recordLoss(in dataID: UInt64) { state.withLock { $0.open[dataID]?.recordLoss() } }

  func isWritable(_ dataID: UInt64) -> Bool {
    state.withLock { $0.open[dataID]?.isWritable ?? true }
  }

  /// Frees the blocks of `data`, the data file `dataID`, that hold no bytes of `present`.
  ///
  /// Does nothing if no bytes can have been lost there. Only the writer of the file may call it.
  func settle(
    _ data: Descriptor, _ dataID: UInt64, present: ExtentSet
  ) throws(ErrorNumber) {
    guard let before = state.withLock({ $0.open[dataID] }), !before.isSettled else { return }
    guard before.isWritable else { throw ErrorNumber(rawValue: EBUSY) }
    try FreeBlocks.giveBack(of: data, except: present)
    state.withLock { $0.open[dataID]?.recordSettled(after: before) }
  }
}
