import ExtentRecord
import Glibc
import HTTPTransferCore
import LinuxSystem
import Synchronization

/// Manages the blocks of data files that hold nothing present; see ``DataBlocks``.
extension CacheDirectory {
  /// Counts an entry object that has opened the data file `dataID`.
  func beginUse(ofData dataID: UInt64, isNew: Bool) {
    state.withLock { state in
      let isSettled = isNew || state.settledData.contains(dataID)
      state.blocks[dataID, default: DataBlocks(isSettled: isSettled)].beginUse()
    }
  }

  /// Ends that count; `isSynced` says whether all its writes are known to be on the disk.
  func endUse(ofData dataID: UInt64, isSynced: Bool) {
    state.withLock { state in
      state.blocks[dataID]?.endUse(isSynced: isSynced)
      guard let blocks = state.blocks[dataID], blocks.isUnused else { return }
      state.blocks[dataID] = nil
      // Data files that are dropped from the set are settled again.
      if state.settledData.count >= Self.greatestSettledCount { state.settledData = [] }
      if blocks.isSettled {
        state.settledData.insert(dataID)
      } else {
        state.settledData.remove(dataID)
      }
    }
  }

  private static let greatestSettledCount = 65_536

  /// Whether this process knows that none of its writes to the data file `dataID` was lost.
  func isSettled(_ dataID: UInt64) -> Bool {
    state.withLock { $0.blocks[dataID]?.isSettled ?? $0.settledData.contains(dataID) }
  }

  func noteLoss(inData dataID: UInt64) { state.withLock { $0.blocks[dataID]?.noteLoss() } }

  func isWritable(_ dataID: UInt64) -> Bool {
    state.withLock { $0.blocks[dataID]?.isWritable ?? true }
  }

  /// Frees the blocks of `data`, the data file `dataID`, that hold nothing of `present`, unless
  /// nothing can have been lost there.
  ///
  /// Only the writer of the file may call it.
  func settle(
    _ data: Descriptor, _ dataID: UInt64, present: ExtentSet
  ) throws(ErrorNumber) {
    guard let before = state.withLock({ $0.blocks[dataID] }), !before.isSettled else { return }
    guard before.isWritable else { throw ErrorNumber(rawValue: EBUSY) }
    try FreeBlocks.giveBack(of: data, except: present)
    state.withLock { $0.blocks[dataID]?.noteSettled(after: before) }
  }
}
